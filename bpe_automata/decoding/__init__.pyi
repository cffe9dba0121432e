from .batches import batch_masks as batch_masks
from .constraint import Constraint as Constraint, Method as Method, constrain as constrain
from .drafts import checked_draft as checked_draft, draft_masks as draft_masks
from .explanation import Explanation as Explanation, explain as explain
from .forced import Forced as Forced, forced_bytes as forced_bytes, forced_tokens as forced_tokens
from .healing import Healed as Healed, heal as heal
from .matcher import (
    Generation as Generation,
    Healing as Healing,
    Matcher as Matcher,
    matcher_of as matcher_of,
)
from .removed import Removed as Removed
from .streaming import FinishedPart as FinishedPart, Stream as Stream, Streamed as Streamed
from .token_table import Listed as Listed, TokenTable as TokenTable
from .verification import Verification as Verification, verify as verify
