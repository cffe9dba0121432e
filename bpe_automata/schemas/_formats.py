"""Builds the automata of the formats of JSON Schema from the grammars of their RFCs.

    L(format_language(name)) <= { w : w is of the format } <= L(format_upper_bound(name))

SUPPORTED are those of the DEFINED formats that are regular; a well-formed regex, for instance, and
Punycode that decodes are not regular. The formats in UNDERSTATED have two different bounds: the
lower one lacks strings whose test is not regular, or that common validators refuse; the upper one
is a simple set that also has the strings that any of these validators accepts. The lower one lacks:

  date, date-time: the year 0000. time, date-time: second 60. duration: lower-case letters.
  email: address literals other than IPv4 and IPv6. hostname: labels that begin with `xn--`.
  uri, iri and their references: `[V1.x]` with a capital V. iri, iri-reference: characters above
  U+FFFF. uri-template: names that begin with an escape, prefixes of four digits.
  relative-json-pointer: zeros that are not the last digit, `+` and `-`.
Sources: RFC 3339, 5321, 1123, 4122, 2673, 4291, 3986, 3987, 6570 (with its errata), 6901.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from bpe_automata._automata.algebra import difference
from bpe_automata._automata.compile import compile_regex
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata.errors import ArgumentError
from bpe_automata.schemas._strings import within_length

# URIs, IRIs and URI templates as regexes, rule by rule (RFC 3986, 3987, 6570).

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
    """The grammar of URIs or IRIs. more: unreserved characters other than ASCII; private: further
    characters of a query; both as in a class of `re`. version: the first letter of an address of a
    future IP version, of which validators of JSON Schema accept only the small one."""

    more: str = ""
    private: str = ""
    version: str = "v"

    @property
    def _unreserved(self) -> str:
        return rf"A-Za-z0-9.\-_~{self.more}"

    def _segment(self, also: str = ":@") -> str:
        """A character of a path."""
        return f"([{self._unreserved}{_DELIMITERS}{also}]|{_ESCAPED})"

    def _authority(self, ipv6: str) -> str:
        name = self._segment("")
        future = rf"{self.version}[0-9A-Fa-f]+\.[A-Za-z0-9.\-_~{_DELIMITERS}:]+"
        return rf"({self._segment(':')}*@)?(\[({ipv6}|{future})\]|{name}*)(:[0-9]*)?"

    def _ending(self) -> str:
        """An optional query and fragment."""
        query = f"({self._segment(f':@/?{self.private}')})*"
        return rf"(\?{query})?(#({self._segment(':@/?')})*)?"

    def _paths(self, ipv6: str, first: str) -> str:
        """An optional authority, and a path. first: a character of the first segment of a path
        that does not begin with a slash."""
        more = f"(/{self._segment()}*)*"
        rooted = f"/({self._segment()}+{more})?"
        return f"(//{self._authority(ipv6)}{more}|{rooted}|{first}+{more})?"

    def whole(self, ipv6: str) -> str:
        """An identifier with a scheme. ipv6: the regex of an IPv6 address."""
        return f"{_SCHEME}:{self._paths(ipv6, self._segment())}{self._ending()}"

    def reference(self, ipv6: str) -> str:
        """An identifier with or without a scheme."""
        relative = f"{self._paths(ipv6, self._segment('@'))}{self._ending()}"
        return f"({self.whole(ipv6)}|{relative})"


URI = Resources()
ANY_URI = Resources(version="[Vv]")
IRI = Resources(_BEYOND_ASCII, _PRIVATE)


def uri_template() -> str:
    """Literals and expressions, with the operators of levels 1 to 4. As in validators of JSON
    Schema, a name does not begin with an escape, and a prefix has at most three digits."""
    literal = rf"([!#$&-;=?-\[\]_a-z~{_BEYOND_ASCII}{_PRIVATE}{_ASTRAL}]|{_ESCAPED})"
    plain = "[A-Za-z0-9_]"
    variable = rf"{plain}(\.?({plain}|{_ESCAPED}))*(:[1-9][0-9]{{0,2}}|\*)?"
    return rf"({literal}|\{{[+#./;?&]?{variable}(,{variable})*\}})*"


_UP_TO_30 = "(0[1-9]|[12][0-9]|30)"
_LEAP = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)"
_DATE = (
    f"([0-9]{{4}}-((0[13578]|1[02])-({_UP_TO_30}|31)|(0[469]|11)-{_UP_TO_30}"
    f"|02-(0[1-9]|1[0-9]|2[0-8]))|{_LEAP}-02-29)"
)
_CLOCK = "([01][0-9]|2[0-3]):[0-5][0-9]"
_TIME = rf"{_CLOCK}:[0-5][0-9](\.[0-9]+)?([Zz]|[+-]{_CLOCK})"
_NUMBER = "[0-9]+"
_CLOCK_SPAN = f"T({_NUMBER}H({_NUMBER}M({_NUMBER}S)?)?|{_NUMBER}M({_NUMBER}S)?|{_NUMBER}S)"
_DAY_SPAN = f"({_NUMBER}Y({_NUMBER}M({_NUMBER}D)?)?|{_NUMBER}M({_NUMBER}D)?|{_NUMBER}D)"
_DURATION = f"P({_DAY_SPAN}({_CLOCK_SPAN})?|{_CLOCK_SPAN}|{_NUMBER}W)"

_BYTE = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IPV4 = rf"{_BYTE}(\.{_BYTE}){{3}}"
_GROUP = "[0-9A-Fa-f]{1,4}"


def ipv6(fewest_left_out: int = 1) -> str:
    """An IPv6 address, in which `::` replaces at least so many groups."""
    last = f"({_GROUP}:{_GROUP}|{_IPV4})"  # the last two groups, if they are spelled out
    found = [f"({_GROUP}:){{6}}{last}"]
    for before in range(8 - fewest_left_out + 1):
        most_after = 8 - fewest_left_out - before
        head = _run(before) if before else ""
        tails = [_run(after) for after in range(1, most_after + 1)]
        tails += [f"({_GROUP}:){{{after - 2}}}{_IPV4}" for after in range(2, most_after + 1)]
        found.append(f"{head}::({'|'.join(tails)})?" if tails else f"{head}::")
    return f"({'|'.join(found)})"


def _run(groups: int) -> str:
    return f"{_GROUP}(:{_GROUP}){{{groups - 1}}}"


_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_QUOTED = r'"([ !#-\[\]-~]|\\[ -~])*"'
_LABEL = "[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?"
_DOMAIN = rf"({_LABEL}(\.{_LABEL})*|\[({_IPV4}|IPv6:{ipv6(2)})\])"
_EMAIL = rf"({_ATOM}(\.{_ATOM})*|{_QUOTED})@{_DOMAIN}"

_UUID = "[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
_POINTER = "(/([^~/]|~[01])*)*"


def _after_year_zero(regex: str) -> ByteDFA:
    return difference(compile_regex(regex), compile_regex("0000(?s:.*)"))


def _hostname() -> ByteDFA:
    """Labels of at most 63 characters, and at most 253 in all."""
    label = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
    names = compile_regex(rf"{label}(\.{label})*")
    punycode = compile_regex(r"((?s:.*)\.)?[Xx][Nn]--(?s:.*)")
    return within_length(difference(names, punycode), 1, 253)


def _plain(regex: str) -> Callable[[], ByteDFA]:
    return lambda: compile_regex(regex)


_MADE: dict[str, Callable[[], ByteDFA]] = {
    "date": lambda: _after_year_zero(_DATE),
    "time": _plain(_TIME),
    "date-time": lambda: _after_year_zero(f"{_DATE}[Tt]{_TIME}"),
    "duration": _plain(_DURATION),
    "email": _plain(_EMAIL),
    "hostname": _hostname,
    "ipv4": _plain(_IPV4),
    "ipv6": _plain(ipv6()),
    "uri": lambda: compile_regex(URI.whole(ipv6())),
    "uri-reference": lambda: compile_regex(URI.reference(ipv6())),
    "iri": lambda: compile_regex(IRI.whole(ipv6())),
    "iri-reference": lambda: compile_regex(IRI.reference(ipv6())),
    "uri-template": lambda: compile_regex(uri_template()),
    "json-pointer": _plain(_POINTER),
    "relative-json-pointer": _plain(f"(0|[1-9]+0?)(#|{_POINTER})"),
    "uuid": _plain(_UUID),
}
SUPPORTED = frozenset(_MADE)
DEFINED = SUPPORTED | {"idn-email", "idn-hostname", "regex"}
_LEAP_TIME = rf"{_CLOCK}:([0-5][0-9]|60)(\.[0-9]+)?([Zz]|[+-]{_CLOCK})\n?"
_AT_MOST = {
    "date": _DATE,
    "time": _LEAP_TIME,
    "date-time": f"{_DATE}[Tt ]{_LEAP_TIME}",
    "duration": r"[+-]?[Pp](?s:.*)",
    "email": r"(?s:.*)@(?s:.*)",
    "hostname": r"[-.A-Za-z0-9\u0080-\U0010ffff]+\n?",
    "uri": rf"({ANY_URI.whole(ipv6())})\n?",
    "uri-reference": rf"({ANY_URI.reference(ipv6())})\n?",
    "iri": r"[A-Za-z][A-Za-z0-9+.-]*:(?s:.*)",
    "iri-reference": r'[^\x00-\x20"<>\\^`{|}\x7f]*',
    "uri-template": r"([^{}]|\{[^}]*\})*",
    "relative-json-pointer": r"[^\x00-/:-\x7f](?s:.*)",
}
UNDERSTATED = frozenset(_AT_MOST)


@lru_cache(maxsize=len(_MADE))
def format_language(name: str) -> ByteDFA:
    """The strings that are certainly of a format. Raises ArgumentError for one not in SUPPORTED."""
    if name not in _MADE:
        raise ArgumentError(f"format {name!r}: give one of {', '.join(sorted(SUPPORTED))}")
    return _MADE[name]()


@lru_cache(maxsize=len(_MADE))
def format_upper_bound(name: str) -> ByteDFA:
    """The strings that may be of a format; more than its language if it is in UNDERSTATED."""
    return compile_regex(_AT_MOST[name]) if name in UNDERSTATED else format_language(name)
