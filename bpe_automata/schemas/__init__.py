"""The language of a JSON Schema: the texts of its valid instances, as JSON or YAML.

schema -> set of JSON values (`_reader`, `_values`) -> texts in one style (`_linking`)
"""

from bpe_automata.schemas._languages import json_schema, yaml_schema
from bpe_automata.schemas._sources import schema_of

__all__ = ["json_schema", "schema_of", "yaml_schema"]
