"""Formats: examples of the RFCs, the calendar itself, and the checkers that `jsonschema` uses."""

from __future__ import annotations

import datetime
import ipaddress
import random

import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import FormatError

from bpe_automata.errors import ArgumentError
from bpe_automata.schemas.formats import DEFINED, SUPPORTED, UNDERSTATED, format_language

CHECKER = Draft202012Validator.FORMAT_CHECKER
GOOD = {
    "date": ("2024-02-29", "2000-02-29", "1999-12-31", "0001-01-01"),
    "time": ("23:59:59Z", "00:00:00.123+05:30", "12:00:00z", "01:02:03-00:00"),
    "date-time": ("1985-04-12T23:20:50.52Z", "1996-12-19t16:39:57-08:00"),
    "duration": ("P4DT12H30M5S", "PT0S", "P1Y2M3D", "P4Y", "P2W", "PT36H", "P1M", "PT1M"),
    "email": (
        *("a@b", "joe.bloggs@example.com", "te~st@example.com", '"joe bloggs"@example.com'),
        *(r'"a\"b@"@x.y', "joe@[127.0.0.1]", "joe@[IPv6:::1]", "joe@[IPv6:1:2:3:4:5:6:7:8]"),
    ),
    "hostname": ("a", "www.example.com", "1host", "a" * 63, "a-b--c", "x." * 126 + "y"),
    "ipv4": ("0.0.0.0", "255.249.199.9"),
    "ipv6": (
        "::",
        "::1",
        "1::",
        "1:2:3:4:5:6:7:8",
        "1::8",
        "::ffff:1.2.3.4",
        "1:2:3:4:5:6:1.2.3.4",
    ),
    "uri": (
        *(
            "http://foo.bar/?baz=qux#quux",
            "urn:oasis:names:x",
            "mailto:a@b.c",
            "a:",
            "ftp://h:21/p",
        ),
        *("ldap://[2001:db8::7]/c=GB?one", "tel:+1-816", "http://[v1.a:b]/", "http://u:p@h", "a:/"),
    ),
    "uri-reference": ("", "/abc", "//h/p", "a/b:c", "#x", "?y", "../z", "%41", "http://a"),
    "iri": ("http://ƒøø.ßår/?∂éœ=πîx#πîüx", "a:日"),
    "iri-reference": ("âππ", "#ƒrägmênt", ""),
    "uri-template": (
        "http://x/d{/term:1,list*}{?q}",
        "",
        "{+path}/a",
        "{a.b}",
        "a'b",
        "\U00010300",
    ),
    "json-pointer": ("", "/", "/foo//bar~0/baz~1/%a", "/日"),
    "relative-json-pointer": ("0", "1/foo", "0#", "12/a~1"),
    "uuid": ("2eb8aa08-aa98-11ea-b4aa-73b441d16380", "2EB8AA08-AA98-11EA-B4Aa-73B441D16380"),
}
BAD = {
    "date": ("2023-02-29", "1900-02-29", "2021-04-31", "2021-13-01", "21-01-01", "2021-1-1", ""),
    "time": ("24:00:00Z", "12:60:00Z", "12:00:00", "12:00Z", "12:00:00.Z", "12:00:00+24:00"),
    "date-time": ("1990-02-31T15:59:59Z", "1990-12-31 15:59:59Z", "1990-12-31T15:59:59"),
    "duration": ("P", "PT", "P1", "1D", "P1D2H", "P2D1Y", "P1YT", "P1Y2W", "P1Y3D", "PT1H2S"),
    "email": ("joe", ".a@b", "a.@b", "a..b@c", "a b@c", "a@b_c", "a@-b", "a@[1.2.3]", "a@"),
    "hostname": ("", "-a", "a-", "a_b", "a" * 64, "a..b", "a.", "x." * 127 + "y", "xn--a", "é"),
    "ipv4": ("256.0.0.1", "1.2.3", "1.2.3.4.5", "01.2.3.4", "1.2.3.4\n", "1.2.3.4/8"),
    "ipv6": (
        "",
        ":",
        "1:2",
        "1:2:3:4:5:6:7:8:9",
        "1::2::3",
        ":::",
        "12345::",
        "::1%e",
        "1:2:3:4:5:6:7::8",
    ),
    "uri": (
        "//foo",
        "a b",
        "http:// x",
        ":a",
        "a:%zz",
        "bar,baz:foo",
        "http://[::1",
        "a:[",
        "é:x",
        "a:é",
        "a://[V0.1]",  # the RFC takes it, checkers do not: see UNDERSTATED
    ),
    "uri-reference": ("a b", r"\\W", "%4", "1:2:", "#a#b"),
    "iri": ("/abc", "http://2001:db8::7]", "âππ", "a:\ue000"),
    "iri-reference": ("a b", r"\\WINDOWS"),
    "uri-template": ("{", "{}", "}", "{a", "a b", "{a:0}", "{|a}"),
    "json-pointer": ("a", "/~", "/~2", "#/a"),
    "relative-json-pointer": ("", "/a", "-1", "01", "0##", "1#/a"),
    "uuid": ("2eb8aa08aa9811eab4aa73b441d16380", "2eb8aa08-aa98-11ea-b4ga-73b441d16380", ""),
}


def accepts(name: str, text: str) -> bool:
    return format_language(name).accepts(text.encode())


def checked(name: str, text: str) -> bool:
    try:
        CHECKER.check(text, name)
    except FormatError:
        return False
    return True


def test_every_format_has_examples() -> None:
    assert set(GOOD) == set(BAD) == SUPPORTED
    assert {"idn-email", "idn-hostname", "regex"} == DEFINED - SUPPORTED
    assert UNDERSTATED <= SUPPORTED


@pytest.mark.parametrize("name", sorted(SUPPORTED))
def test_examples(name: str) -> None:
    assert [text for text in GOOD[name] if not accepts(name, text)] == []
    assert [text for text in BAD[name] if accepts(name, text)] == []


def test_every_day_of_the_calendar() -> None:
    for year in (1, 4, 100, 400, 1900, 1999, 2000, 2023, 2024, 9999):
        for month in range(14):
            for day in range(33):
                assert accepts("date", f"{year:04}-{month:02}-{day:02}") == is_day(year, month, day)


def is_day(year: int, month: int, day: int) -> bool:
    try:
        datetime.date(year, month, day)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("name", sorted(SUPPORTED))
def test_what_is_in_passes_the_checker(name: str) -> None:
    if name not in CHECKER.checkers:
        pytest.skip("jsonschema has no checker for it here")
    rng, dfa = random.Random(name), format_language(name)
    for _ in range(15 if name.startswith("iri") else 60):  # iri: a slow parser
        text = dfa.sample(rng, rng.choice((8, 30, 90))).decode()
        assert checked(name, text), text


@pytest.mark.parametrize(
    "name", ["date", "time", "date-time", "ipv4", "ipv6", "uri", "uri-reference"]
)
def test_near_misses_are_told_apart_as_the_checker_does(name: str) -> None:
    if name not in CHECKER.checkers:
        pytest.skip("jsonschema has no checker for it here")
    rng, dfa = random.Random(name), format_language(name)
    for _ in range(200):
        text = dfa.sample(rng, 30).decode()
        at = rng.randrange(len(text) + 1)
        near = text[:at] + rng.choice(("", *"01:.-/%z@92 a")) + text[at + rng.randrange(2) :]
        if not near.startswith("0000"):  # a year that `datetime` does not have
            assert accepts(name, near) == checked(name, near), near


def test_addresses_of_ipv6() -> None:
    rng = random.Random(0)
    for _ in range(3_000):
        parts = [
            "".join(rng.choices("0aF9", k=rng.randrange(6))) for _ in range(rng.randrange(1, 10))
        ]
        text = ":".join(parts) + rng.choice(("", "", ":1.2.3.4", "::"))
        try:
            ipaddress.IPv6Address(text)
            valid = True
        except ValueError:
            valid = False
        assert accepts("ipv6", text) == valid, text


def test_an_unknown_format() -> None:
    with pytest.raises(ArgumentError, match="colour"):
        format_language("colour")
