"""JSON Schema to automata of texts, JSON or YAML.

    schema -> sets of JSON values (`values`) -> texts in one style (`writing`) -> byte DFA

`compile_json_schema` and `compile_yaml_schema` do it all.
"""

from bpe_automata.schemas.compile import compile_json_schema, compile_yaml_schema
from bpe_automata.schemas.sources import schema_of

__all__ = ["compile_json_schema", "compile_yaml_schema", "schema_of"]
