from .description import (
    AddedToken as AddedToken,
    Description as Description,
    SplitRule as SplitRule,
)
from .tokenizer import AddedTokens as AddedTokens, Tokenizer as Tokenizer
