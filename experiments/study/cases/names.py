"""Names and entities: people, places, companies, works, species, substances."""

from __future__ import annotations

from experiments.study.cases.making import table

_PEOPLE = (
    ("prejudice", "Pride and Prejudice is by", "Jane Austen|Jane Eyre|Emily Brontë", "Jane Austen"),
    (
        "species",
        "On the Origin of Species was written by Charles",
        "Darwin|Dickens|Lyell",
        "Darwin",
    ),
    ("twist", "Oliver Twist is a novel by Charles", "Dickens|Darwin|Perrault", "Dickens"),
    (
        "relativity",
        "The theory of relativity is by Albert",
        "Einstein|Camus|Schweitzer",
        "Einstein",
    ),
    ("penicillin", "Penicillin was discovered by Alexander", "Fleming|Bell|Pushkin", "Fleming"),
    ("telephone", "The telephone was patented in 1876 by", "Bell|Edison|Tesla|Morse", "Bell"),
    ("starry_night", "The Starry Night was painted by Vincent van", "Gogh|Dyck|Eyck", "Gogh"),
    (
        "mona_lisa",
        "The Mona Lisa was painted by",
        "Leonardo|Michelangelo|Raphael|Donatello",
        "Leonardo",
    ),
    (
        "moon",
        "The second person who set foot on the Moon was",
        "Neil|Buzz|Michael|Pete",
        "Buzz",
    ),
    (
        "first_in_space",
        "The first human in space was named",
        "Yuri|Alan|John|Valentina",
        "Yuri",
    ),
    (
        "python",
        "The programming language Python was created by",
        "Guido|Linus|Bjarne|Dennis",
        "Guido",
    ),
    ("magic_flute", "The Magic Flute is an opera by", "Mozart|Beethoven|Haydn|Salieri", "Mozart"),
    ("nobel", "The first woman who won a Nobel Prize was Marie", "Curie|Antoinette|Tharp", "Curie"),
    ("civil_war", "The US president during the Civil War was", "Lincoln|Lee|Grant", "Lincoln"),
    (
        "first_lady",
        "The wife of President Barack Obama is",
        "Michelle|Hillary|Laura|Melania",
        "Michelle",
    ),
    ("chancellor", "The first chancellor of West Germany was Konrad", "Adenauer|Zuse", "Adenauer"),
    (
        "solitude",
        "One Hundred Years of Solitude is a novel by Gabriel García",
        "Márquez|Lorca|Moreno",
        "Márquez",
    ),
    ("cogito", "'I think, therefore I am', wrote René", "Descartes|Magritte|Girard", "Descartes"),
    ("rusalka", "The opera Rusalka was composed by Antonín", "Dvořák|Novotný", "Dvořák"),
    ("mermaid", "The Little Mermaid is a tale by Hans Christian", "Andersen|Ørsted", "Andersen"),
    (
        "gravity",
        "The law of universal gravitation is due to Isaac",
        "Newton|Asimov|Stern",
        "Newton",
    ),
)

_PLACES = (
    ("vienna", "Vienna is the capital of", "Austria|Australia|Hungary", "Austria"),
    ("baghdad", "Baghdad is the capital of", "Iran|Iraq|Jordan", "Iraq"),
    ("abuja", "The city of Abuja lies in", "Nigeria.|Niger.|Ghana.", "Nigeria."),
    (
        "south_america",
        "The largest country of South America is",
        "Brazil|Bolivia|Argentina|Peru",
        "Brazil",
    ),
    ("london_river", "The river that flows through London is the", "Thames|Severn|Trent", "Thames"),
    (
        "africa_mountain",
        "The highest mountain in Africa is Mount",
        "Kenya|Kilimanjaro|Meru",
        "Kilimanjaro",
    ),
    (
        "largest_planet",
        "The largest planet of our solar system is",
        "Jupiter|Saturn|Neptune|Uranus",
        "Jupiter",
    ),
    ("pisa", "The city with the most famous leaning tower is", "Pisa|Paris|Padua|Siena", "Pisa"),
    ("korea_capital", "Pyongyang is the capital of", "North Korea|South Korea", "North Korea"),
    ("moved_to", "The conference was moved from Berlin to", "Munich|Vienna|Zürich|Łódź", ""),
    ("holidays", "Last summer we spent two weeks in", "Portugal|Poland|Peru|Patagonia", ""),
)

_THINGS = (
    ("iphone", "The company that makes the iPhone is", "Apple|Samsung|Google|Nokia", "Apple"),
    ("windows", "The maker of Windows is", "Microsoft|Micron|Apple|IBM", "Microsoft"),
    ("walkman", "The Walkman was introduced in 1979 by", "Sony|Sanyo|Panasonic|Philips", "Sony"),
    ("cat", "The scientific name of the house cat is Felis", "catus|silvestris|chaus", "catus"),
    ("wolf", "The grey wolf belongs to the species Canis", "lupus|latrans|aureus", "lupus"),
    ("yeast", "Baker's yeast is Saccharomyces", "cerevisiae|boulardii|bayanus", "cerevisiae"),
    (
        "fly",
        "The fruit fly of the genetics laboratory is Drosophila",
        "melanogaster|simulans|virilis",
        "melanogaster",
    ),
    ("gut", "A common bacterium of the gut is Escherichia", "coli|albertii|fergusonii", "coli"),
    ("sea_god", "The Greek god of the sea is", "Poseidon|Zeus|Hades|Apollo", "Poseidon"),
    ("watson", "The friend of Sherlock Holmes is Doctor", "Watson|Jekyll|Who|Dolittle", "Watson"),
    ("sodium", "The chemical symbol Na stands for", "sodium|nitrogen|nickel|neon", "sodium"),
    ("water", "Water consists of oxygen and", "hydrogen|helium|nitrogen|carbon", "hydrogen"),
    ("yen", "The currency of Japan is the", "yen|yuan|won|baht", "yen"),
    (
        "brazil_language",
        "The official language of Brazil is",
        "Portuguese|Spanish|English",
        "Portuguese",
    ),
)

_OPEN = (
    ("girl", "Once upon a time there was a girl named", "Lily|Alice|Sophie|Zofia|Aïsha", ""),
    ("letter", "Dear Mr.", "Smith|Schmidt|Nguyen|Kowalski|O'Brien", ""),
    ("dog", "They had a small brown dog called", "Rex|Max|Bella|Luna", ""),
    ("best_friend", "My best friend at school was", "Anna|Tomás|Peter|Mei|Yusuf", ""),
    ("startup", "After the merger the company was renamed", "Novatek|Acme|Globex|Initech", ""),
)

_TITLES = (
    ("book", 'Her favourite novel is "', "Dracula|Emma|Ulysses|Persuasion", ""),
    ("film", 'The 1997 film about the sunken liner is "', "Titanic|Twister|Jaws", "Titanic"),
    ("song", "John Lennon's best known solo song is \"", "Imagine|Jealous Guy", "Imagine"),
)

CASES = (
    table("names", "space", _PEOPLE)
    + table("names", "space", _PLACES)
    + table("names", "space", _THINGS)
    + table("names", "space", _OPEN)
    + table("names", "quote", _TITLES, end='"')
)
