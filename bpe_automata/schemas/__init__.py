"""Compiles a JSON Schema to the byte DFA of its valid instances, written as JSON or YAML.

schema -> set of JSON values (`reader`, `values`) -> texts in one style (`writing`) -> byte DFA
"""

from bpe_automata.schemas._compile import (
    compile_json_schema,
    compile_yaml_schema,
    link_json_schema,
    link_yaml_schema,
)
from bpe_automata.schemas._sources import schema_of

__all__ = [
    "compile_json_schema",
    "compile_yaml_schema",
    "link_json_schema",
    "link_yaml_schema",
    "schema_of",
]
