from ._automata.compile import Budget as Budget, compile_regex as compile_regex
from ._automata.dfa import BrokenAutomatonError as BrokenAutomatonError, ByteDFA as ByteDFA
from ._automata.linked import LinkedDFA as LinkedDFA
from ._automata.linked_regex import link_regex as link_regex
from ._automata.sources import from_interegular as from_interegular, from_strings as from_strings
from ._composition.described import described as described
from ._composition.free import text_until as text_until, text_without as text_without
from ._composition.joining import (
    either as either,
    join as join,
    part as part,
    repeat as repeat,
    special as special,
)
from ._composition.readings import FinishedPart as FinishedPart
from ._composition.tools import (
    TOOL_FORMATS as TOOL_FORMATS,
    ToolFormat as ToolFormat,
    tools as tools,
)
from ._core.canonical import (
    CanonicalAutomaton as CanonicalAutomaton,
    canonical_automaton as canonical_automaton,
)
from ._constructions.cartesian_merge import CartesianMerge as CartesianMerge
from ._constructions.engine import Engine as Engine, TextEngine as TextEngine
from ._constructions.explicit import (
    Explored as Explored,
    explore as explore,
    explored as explored,
)
from ._core.geometry import Geometry as Geometry
from ._constructions.lift import Lift as Lift
from ._constructions.segments import Segments as Segments
from ._decoding.batches import batch_masks as batch_masks
from ._decoding.constraint import (
    Constraint as Constraint,
    Method as Method,
    constrain as constrain,
)
from ._decoding.drafts import (
    checked_draft as checked_draft,
    draft_masks as draft_masks,
)
from ._decoding.explanation import Explanation as Explanation, explain as explain
from ._decoding.forced import (
    Forced as Forced,
    forced_bytes as forced_bytes,
    forced_tokens as forced_tokens,
)
from ._decoding.healing import Healed as Healed, heal as heal
from ._decoding.matcher import (
    Generation as Generation,
    Healing as Healing,
    Matcher as Matcher,
    matcher_of as matcher_of,
)
from ._decoding.removed import Removed as Removed
from ._decoding.streaming import Stream as Stream, Streamed as Streamed
from ._decoding.token_table import Listed as Listed, TokenTable as TokenTable
from ._decoding.verification import Verification as Verification, verify as verify
from ._token_automata.algebra import Counterexample as Counterexample
from ._token_automata.automaton import TokenAutomaton as TokenAutomaton
from ._token_automata.explain import Acceptance as Acceptance
from ._tokenizer.description import (
    AddedToken as AddedToken,
    Description as Description,
    SplitRule as SplitRule,
)
from ._tokenizer.tokenizer import AddedTokens as AddedTokens, Tokenizer as Tokenizer
from ._grammars.linking import compile_grammar as compile_grammar
from .errors import BpeAutomataError as BpeAutomataError
from .reference._published import cartesian_merge as cartesian_merge, direct_merge as direct_merge

__version__: str
