"""Years, dates, times, quantities, money, versions, measures and counts."""

from __future__ import annotations

from experiments.study.cases.making import table

_YEARS = (
    ("titanic", "The Titanic sank in the year", "1905|1912|1915|1918", "1912"),
    ("columbus", "Columbus first reached America in", "1482|1492|1498|1502", "1492"),
    ("french_revolution", "The French Revolution began in", "1776|1789|1799|1848", "1789"),
    ("decade", "The Beatles recorded their albums in the", "1950s|1960s|1970s", "1960s"),
    (
        "century",
        "Isaac Newton died in the",
        "17th century|18th century|19th century",
        "18th century",
    ),
    ("era", "Julius Caesar was murdered in 44", "BC|AD", "BC"),
    ("birth_year", "I was born in the year", "1985|1990|1995|2001|2008", ""),
)

_DATES = (
    ("christmas", "In Germany, Christmas Eve is on", "24 December|25 December", "24 December"),
    ("independence", "Independence Day in the USA is on July", "4th|14th|24th", "4th"),
    ("leap", "In a leap year the last day of February is the", "28th|29th|30th", "29th"),
    ("summer_month", "In Europe the hottest month is usually", "January|June|July", "July"),
    ("after_monday", "The day after Monday is", "Sunday|Tuesday|Thursday", "Tuesday"),
    ("next_month", "The month after April is", "March|May|August", "May"),
    ("deadline", "Please send the form back by Friday,", "May 3|May 10|June 7", ""),
    ("quarter", "The months October to December are", "Q1|Q2|Q3|Q4", "Q4"),
)

_TIMES = (
    ("noon", "On a 24-hour clock, noon is", "00:00|12:00|24:00", "12:00"),
    ("half_past", "Half past seven in the evening is", "07:30|17:30|19:30", "19:30"),
    ("afternoon", "School usually starts at eight in the", "morning|evening", "morning"),
    ("meeting", "The meeting starts at", "9 am|10 am|2 pm|3:30 pm", ""),
    ("duration", "A football match, without the break, lasts", "45 min|60 min|90 min", "90 min"),
    ("minute", "One hour has", "24 minutes|60 minutes|100 minutes", "60 minutes"),
)

_QUANTITIES = (
    ("sides", "A hexagon has this number of sides:", "5|6|7|8", "6"),
    ("product", "12 * 12 =", "124|142|144|148", "144"),
    ("half", "Half of 250 is", "75|100|125|150", "125"),
    ("spider", "The number of legs of a spider is", "six|eight|ten", "eight"),
    ("week", "The number of days in a week is", "five|six|seven", "seven"),
    ("bytes", "One kibibyte is", "1000 bytes|1024 bytes", "1024 bytes"),
    ("percent", "Three quarters are", "25%|34%|70%|75%", "75%"),
    ("pi", "Pi is approximately", "3.12|3.14|3.41|3.16", "3.14"),
    ("negative", "5 - 8 =", "-3|-2|3", "-3"),
    ("body", "The normal temperature of the human body is about", "27 °C|37 °C|47 °C", "37 °C"),
    ("distance", "A marathon is about", "21 km|42 km|100 km", "42 km"),
    ("roman", "The Roman numeral for nine is", "VIIII|IX|XI", "IX"),
    ("ordinal", "Neptune, counted from the sun, is the planet number", "7|8|9", "8"),
    ("fraction", "0.5 as a fraction is", "1/2|1/3|1/5", "1/2"),
    ("big", "The population of China is more than one", "hundred|million|billion", "billion"),
    ("exponent", "One million is 10 to the power of", "5|6|7|9", "6"),
    ("phone", "In the USA the number for emergencies is", "112|911|999", "911"),
    ("port", "The default port of HTTPS is", "22|80|443", "443"),
    ("status", "The HTTP status code for 'Not Found' is", "200|301|404|500", "404"),
)

_MONEY = (
    ("cents", "A quarter is worth", "5 cents|10 cents|25 cents", "25 cents"),
    ("change", "I pay 7 dollars with a 10 dollar note and get back", "$2|$3|$4", "$3"),
    ("menu", "Espresso", "$2.50|$3.00|$3.75|$12.00", ""),
    ("rent", "Two rooms, kitchen, bath; monthly rent:", "€450|€700|€1,200|€2,500", ""),
    ("thousands", "Twelve thousand dollars are", "$1,200|$12,000|$120,000", "$12,000"),
)

_GOES_ON = (
    ("iso", "In Europe the Second World War ended on 1945-", "05-08|08-05|09-02", "05-08"),
    ("requires", "# uses dataclasses\nrequires-python >=", "3.7|3.4|2.7", "3.7"),
    ("seconds", "The train leaves at 12:", "05.|15.|30.|45.", ""),
)

_IN_QUOTES = (
    ("json_date", '{"event": "Bastille Day", "date": "07-', "04|14|24", "14"),
    ("json_height", '{"height of Mount Everest": "', "8,849 m|8,849 km|884 m", "8,849 m"),
    ("release", '[project]\nname = "parser"\nversion = "', "0.1.0|0.0.1|1.0.0|2.3", ""),
)

_VERSIONS = (
    (
        "tag",
        "The first stable release under semantic versioning is version",
        "0.1.0|0.9.9|1.0.0",
        "1.0.0",
    ),
    ("bugfix", "A bug fix release after 2.4.1 is called", "2.4.2|2.5.0|3.0.0", "2.4.2"),
    ("cpp", "Lambdas came to C++ with the standard", "C++03|C++11|C++17", "C++11"),
)

_LISTS = (
    ("fibonacci", "0, 1, 1, 2, 3, 5, 8,", "11|12|13|16", "13"),
    ("powers", "1, 2, 4, 8, 16,", "18|24|30|32", "32"),
    ("clock", "08:00, 08:15, 08:30,", "08:40|08:45|09:00", "08:45"),
    ("days", "Mon, Tue, Wed,", "Thu|Fri|Sat|Sun", "Thu"),
)

CASES = (
    table("dates_numbers", "space", _YEARS)
    + table("dates_numbers", "space", _DATES)
    + table("dates_numbers", "word", _GOES_ON)
    + table("dates_numbers", "space", _TIMES)
    + table("dates_numbers", "space", _QUANTITIES)
    + table("dates_numbers", "space", _MONEY)
    + table("dates_numbers", "quote", _IN_QUOTES, "json", '"')
    + table("dates_numbers", "space", _VERSIONS)
    + table("dates_numbers", "space", _LISTS)
)
