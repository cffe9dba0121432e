from .descriptions import described as described
from .free import text_until as text_until, text_without as text_without
from .joining import (
    either as either,
    join as join,
    part as part,
    repeat as repeat,
    special as special,
)
from .language import automaton_of as automaton_of
from .calls import TOOL_FORMATS as TOOL_FORMATS, ToolFormat as ToolFormat, tools as tools
