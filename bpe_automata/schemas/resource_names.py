"""URIs, IRIs and URI templates as regexes, rule by rule (RFC 3986, 3987, 6570)."""

from __future__ import annotations

from dataclasses import dataclass

_ESCAPED = "%[0-9A-Fa-f]{2}"
_DELIMITERS = "!$&'()*+,;="
# Without the planes above 0, which validators of JSON Schema refuse in IRIs, but not in templates.
_BEYOND_ASCII = "\\u00a0-\\ud7ff\\uf900-\\ufdcf\\ufdf0-\\uffef"
_PRIVATE = "\\ue000-\\uf8ff"
_ASTRAL = "".join(f"\\U{plane:04x}0000-\\U{plane:04x}fffd" for plane in range(1, 14))
_ASTRAL += "\\U000e1000-\\U000efffd\\U000f0000-\\U000ffffd\\U00100000-\\U0010fffd"
_SCHEME = r"[A-Za-z][A-Za-z0-9+.\-]*"


@dataclass(frozen=True)
class Resources:
    """The identifiers whose unreserved characters are ASCII and `more`; a query may also hold
    `private` ones. Both are in the form in which `re` has them inside a class. version: the letter
    that begins an address of a later IP; validators of JSON Schema know only the small one."""

    more: str = ""
    private: str = ""
    version: str = "v"

    @property
    def _unreserved(self) -> str:
        return rf"A-Za-z0-9.\-_~{self.more}"

    def _segment(self, also: str = ":@") -> str:
        """One character of a path."""
        return f"([{self._unreserved}{_DELIMITERS}{also}]|{_ESCAPED})"

    def _authority(self, ipv6: str) -> str:
        name = self._segment("")
        future = rf"{self.version}[0-9A-Fa-f]+\.[A-Za-z0-9.\-_~{_DELIMITERS}:]+"
        return rf"({self._segment(':')}*@)?(\[({ipv6}|{future})\]|{name}*)(:[0-9]*)?"

    def _ending(self) -> str:
        """A query and a fragment, if there are."""
        query = f"({self._segment(f':@/?{self.private}')})*"
        return rf"(\?{query})?(#({self._segment(':@/?')})*)?"

    def _paths(self, ipv6: str, first: str) -> str:
        """An authority and a path, or a path; first: a character of the first segment, if the
        path does not begin with a slash."""
        more = f"(/{self._segment()}*)*"
        rooted = f"/({self._segment()}+{more})?"
        return f"(//{self._authority(ipv6)}{more}|{rooted}|{first}+{more})?"

    def whole(self, ipv6: str) -> str:
        """With a scheme. ipv6: the regex of such an address."""
        return f"{_SCHEME}:{self._paths(ipv6, self._segment())}{self._ending()}"

    def reference(self, ipv6: str) -> str:
        """With or without one."""
        relative = f"{self._paths(ipv6, self._segment('@'))}{self._ending()}"
        return f"({self.whole(ipv6)}|{relative})"


URI = Resources()
ANY_URI = Resources(version="[Vv]")
IRI = Resources(_BEYOND_ASCII, _PRIVATE)


def uri_template() -> str:
    """Literals and expressions, with the operators of levels 1 to 4; a name begins with no escape,
    and a prefix has at most three digits, as validators of JSON Schema have it."""
    literal = rf"([!#$&-;=?-\[\]_a-z~{_BEYOND_ASCII}{_PRIVATE}{_ASTRAL}]|{_ESCAPED})"
    plain = "[A-Za-z0-9_]"
    variable = rf"{plain}(\.?({plain}|{_ESCAPED}))*(:[1-9][0-9]{{0,2}}|\*)?"
    return rf"({literal}|\{{[+#./;?&]?{variable}(,{variable})*\}})*"
