"""Builds the automata of the formats of JSON Schema from the grammars of their RFCs.

    L(format_language(name)) <= { w : w is of the format } <= L(format_upper_bound(name))

SUPPORTED has all formats that a draft defines except idn-hostname (a label has at most 63
characters in Punycode, which takes arithmetic with code points), and uuid1 to uuid8, the UUIDs of
one version, as pydantic names them. The formats in UNDERSTATED have two different bounds: the lower
one lacks strings whose test is not regular, or on which the sources and common validators differ;
the upper one is a simple set that has all strings which any of these validators accepts. The lower
one lacks:

  date, date-time: the year 0000. duration: lower-case letters. time, date-time: leap
  seconds in other zones than UTC, and on other days than the last of June and December.
  email, idn-email: address literals other than IPv4 and IPv6.
  hostname: labels that begin with `xn--`, as it is not regular whether Punycode decodes.
  uri, uri-reference: `[V1.x]` with a capital V. relative-json-pointer: `+` and `-`.
  regex: groups more than two deep; groups with names, references to groups, `\\p{...}`; in classes,
  hyphens except in ranges that begin with 0, 1, a or A; repetitions of 1,000 and more, and `{m,n}`
  with both below 10 and m above 1, or with m above 9.
Sources: RFC 3339, 5321, 6531, 1123, 4122, 9562, 2673, 4291, 3986, 3987, 6570 (with its errata),
6901; ECMA-262 (patterns with the flag u).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial

from bpe_automata.automata.algebra import difference
from bpe_automata.automata.compile import compile_regex
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.errors import ArgumentError
from bpe_automata.schemas._scalar_sets import Bounded, within_length

# URIs, IRIs and URI templates as regexes, rule by rule (RFC 3986, 3987, 6570).

_ESCAPED = "%[0-9A-Fa-f]{2}"
_DELIMITERS = "!$&'()*+,;="
_BEYOND_ASCII = "\\u00a0-\\ud7ff\\uf900-\\ufdcf\\ufdf0-\\uffef\\U000e1000-\\U000efffd"
_BEYOND_ASCII += "".join(f"\\U{plane:04x}0000-\\U{plane:04x}fffd" for plane in range(1, 14))
_PRIVATE = "\\ue000-\\uf8ff\\U000f0000-\\U000ffffd\\U00100000-\\U0010fffd"
_SCHEME = r"[A-Za-z][A-Za-z0-9+.\-]*"


@dataclass(frozen=True)
class Resources:
    """The grammar of URIs or IRIs. more: unreserved characters other than ASCII; private: further
    characters of a query; both as in a class of `re`. version: the first letter of an address of a
    future IP version, which validators of URIs accept only in lower case."""

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
IRI = Resources(_BEYOND_ASCII, _PRIVATE, "[Vv]")


def uri_template() -> str:
    """Literals and expressions, with the operators of levels 1 to 4."""
    literal = rf"([!#$&-;=?-\[\]_a-z~{_BEYOND_ASCII}{_PRIVATE}]|{_ESCAPED})"
    letter = f"([A-Za-z0-9_]|{_ESCAPED})"
    variable = rf"{letter}(\.?{letter})*(:[1-9][0-9]{{0,3}}|\*)?"
    return rf"({literal}|\{{[+#./;?&]?{variable}(,{variable})*\}})*"


_UP_TO_30 = "(0[1-9]|[12][0-9]|30)"
_LEAP = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)"
_DATE = (
    f"([0-9]{{4}}-((0[13578]|1[02])-({_UP_TO_30}|31)|(0[469]|11)-{_UP_TO_30}"
    f"|02-(0[1-9]|1[0-9]|2[0-8]))|{_LEAP}-02-29)"
)
_CLOCK = "([01][0-9]|2[0-3]):[0-5][0-9]"
_FRACTION = r"(\.[0-9]+)?"
_TIME = rf"{_CLOCK}:[0-5][0-9]{_FRACTION}([Zz]|[+-]{_CLOCK})"
# A leap second is 23:59:60 in UTC. In another zone it is in another minute, and each such minute
# would take states of its own, wherever a schema has a time.
_LEAP_SECOND = f"23:59:60{_FRACTION}([Zz]|[+-]00:00)"
_LEAP_DAY = "[0-9]{4}-(06-30|12-31)"
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
_ANY_LETTER = r"\u0080-\U0010ffff"  # RFC 6531 adds all that is not ASCII


def idn_email() -> str:
    """An address with characters beyond ASCII."""
    atom, quoted = (
        _ATOM.replace("~-]", f"~{_ANY_LETTER}-]"),
        _QUOTED.replace("-~]", f"-~{_ANY_LETTER}]"),
    )
    letter = f"[A-Za-z0-9{_ANY_LETTER}]"
    label = f"{letter}([A-Za-z0-9{_ANY_LETTER}-]*{letter})?"
    return rf"({atom}(\.{atom})*|{quoted})@({label}(\.{label})*|{_DOMAIN})"


# Regexes of ECMA-262: alternatives of terms, with groups inside one another to a bounded depth.

_LEVELS = 2  # one more doubles the states
_SYNTAX = r"\^$.*+?()\[\]{}|\\"
_ESCAPES = rf"\\([dDwWsStnrfv]|[{_SYNTAX}/]|c[A-Za-z]|x[0-9A-Fa-f]{{2}}|u[0-9A-Fa-f]{{4}})"


def ecma_regex() -> str:
    """A pattern with the flag u."""
    ranges = "0-[0-9]|1-[1-9]|a-[a-z]|A-[A-Z]"
    member = rf"[^\\\]\-\^]|{_ESCAPES}|{ranges}"
    members = rf"\[\^?({member})*\]"
    counts = "[0-9]{1,3},?|0,[0-9]|1,[1-9]|[0-9],[1-9][0-9]{1,2}"
    repeat = rf"(([*+?]|\{{({counts})\}})\??)?"
    simple = rf"([^{_SYNTAX}]|\.|{_ESCAPES}|{members}){repeat}|[\^$]|\\[bB]"
    inside = f"({simple}|\\|)*"
    for _ in range(_LEVELS):
        groups = rf"\((\?:)?{inside}\){repeat}|\(\?<?[=!]{inside}\)"
        inside = f"({simple}|{groups}|\\|)*"
    return inside


_HEX = "[0-9A-Fa-f]"
_UUID = f"{_HEX}{{8}}(-{_HEX}{{4}}){{3}}-{_HEX}{{12}}"
_UUID_OF = f"{_HEX}{{8}}-{_HEX}{{4}}-%d{_HEX}{{3}}-[89ABab]{_HEX}{{3}}-{_HEX}{{12}}"
_POINTER = "(/([^~/]|~[01])*)*"


_LABELS = r"{0}(\.{0})*".format("[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_PUNYCODE = r"((?s:.*)\.)?[Xx][Nn]--(?s:.*)"

_REGEXES = {
    "date": _DATE,
    "time": f"{_TIME}|{_LEAP_SECOND}",
    "date-time": f"{_DATE}[Tt]{_TIME}|{_LEAP_DAY}[Tt]{_LEAP_SECOND}",
    "duration": _DURATION,
    "email": _EMAIL,
    "idn-email": idn_email(),
    "hostname": _LABELS,
    "ipv4": _IPV4,
    "ipv6": ipv6(),
    "uri": URI.whole(ipv6()),
    "uri-reference": URI.reference(ipv6()),
    "iri": IRI.whole(ipv6()),
    "iri-reference": IRI.reference(ipv6()),
    "uri-template": uri_template(),
    "json-pointer": _POINTER,
    "relative-json-pointer": f"(0|[1-9][0-9]*)(#|{_POINTER})",
    "regex": ecma_regex(),
    "uuid": _UUID,
    **{f"uuid{version}": _UUID_OF % version for version in range(1, 9)},
}
_BUT = {**dict.fromkeys(("date", "date-time"), "0000(?s:.*)"), "hostname": _PUNYCODE}
"""What is subtracted from the languages of their regexes."""
SUPPORTED = frozenset(_REGEXES)
_LEAP_TIME = rf"{_CLOCK}:([0-5][0-9]|60)(\.[0-9]+)?([Zz]|[+-]{_CLOCK})\n?"
_AT_MOST = {
    "date": _DATE,
    "time": _LEAP_TIME,
    "date-time": f"{_DATE}[Tt ]{_LEAP_TIME}",
    "duration": r"[+-]?[Pp](?s:.*)",
    **dict.fromkeys(("email", "idn-email"), r"(?s:.*)@(?s:.*)"),
    "regex": "(?s:.*)",
    "hostname": r"[-.A-Za-z0-9\u0080-\U0010ffff]+\n?",
    "uri": rf"({ANY_URI.whole(ipv6())})\n?",
    "uri-reference": rf"({ANY_URI.reference(ipv6())})\n?",
    "iri": r"[A-Za-z][A-Za-z0-9+.-]*:(?s:.*)",
    "iri-reference": r'[^\x00-\x20"<>\\^`{|}\x7f]*',
    "uri-template": r"([^{}]|\{[^}]*\})*",
    "relative-json-pointer": r"[^\x00-/:-\x7f](?s:.*)",
}
UNDERSTATED = frozenset(_AT_MOST)


@lru_cache(maxsize=len(_REGEXES))
def format_language(name: str) -> ByteDFA:
    """The strings that are certainly of a format. Raises ArgumentError for one not in SUPPORTED."""
    if name not in _REGEXES:
        raise ArgumentError(f"format {name!r}: give one of {', '.join(sorted(SUPPORTED))}")
    found = compile_regex(_REGEXES[name])
    if name in _BUT:
        found = difference(found, compile_regex(_BUT[name]))
    return within_length(found, 1, 253) if name == "hostname" else found


@lru_cache(maxsize=len(_REGEXES))
def format_upper_bound(name: str) -> ByteDFA:
    """The strings that may be of a format; more than its language if it is in UNDERSTATED."""
    return compile_regex(_AT_MOST[name]) if name in UNDERSTATED else format_language(name)


@lru_cache(maxsize=len(_REGEXES))
def format_strings(name: str) -> ByteDFA:
    """The strings of a format, with both bounds if they differ."""
    lower = format_language(name)
    return Bounded(lower, partial(format_upper_bound, name)) if name in UNDERSTATED else lower
