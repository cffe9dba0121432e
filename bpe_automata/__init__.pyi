from ._budget import Budget as Budget
from .automata import (
    BrokenAutomatonError as BrokenAutomatonError,
    ByteDFA as ByteDFA,
    compile_regex as compile_regex,
    LinkedDFA as LinkedDFA,
    link_regex as link_regex,
    from_interegular as from_interegular,
    from_strings as from_strings,
)
from .tokenizer import (
    AddedToken as AddedToken,
    Description as Description,
    SplitRule as SplitRule,
    AddedTokens as AddedTokens,
    Tokenizer as Tokenizer,
)
from .canonical import (
    CanonicalAutomaton as CanonicalAutomaton,
    canonical_automaton as canonical_automaton,
    Geometry as Geometry,
)
from .constructions import (
    CartesianMerge as CartesianMerge,
    Engine as Engine,
    TextEngine as TextEngine,
    Explored as Explored,
    explore as explore,
    explored as explored,
    Lift as Lift,
    Segments as Segments,
)
from .token_automata import (
    Counterexample as Counterexample,
    TokenAutomaton as TokenAutomaton,
    Acceptance as Acceptance,
)
from .grammars import compile_grammar as compile_grammar
from .composition import (
    described as described,
    text_until as text_until,
    text_without as text_without,
    either as either,
    join as join,
    part as part,
    repeat as repeat,
    special as special,
    TOOL_FORMATS as TOOL_FORMATS,
    ToolFormat as ToolFormat,
    tools as tools,
)
from .decoding import (
    batch_masks as batch_masks,
    Constraint as Constraint,
    Method as Method,
    constrain as constrain,
    checked_draft as checked_draft,
    draft_masks as draft_masks,
    Explanation as Explanation,
    explain as explain,
    Forced as Forced,
    forced_bytes as forced_bytes,
    forced_tokens as forced_tokens,
    Healed as Healed,
    heal as heal,
    Generation as Generation,
    Healing as Healing,
    Matcher as Matcher,
    matcher_of as matcher_of,
    Removed as Removed,
    FinishedPart as FinishedPart,
    Stream as Stream,
    Streamed as Streamed,
    Listed as Listed,
    TokenTable as TokenTable,
    Verification as Verification,
    verify as verify,
)
from .errors import BpeAutomataError as BpeAutomataError
from .reference._published import cartesian_merge as cartesian_merge, direct_merge as direct_merge

__version__: str
