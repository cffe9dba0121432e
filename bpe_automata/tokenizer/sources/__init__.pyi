from .detect import path_origin as path_origin, read_path as read_path
from .named import (
    TABLE as TABLE,
    Named as Named,
    encoding_origin as encoding_origin,
    is_encoding as is_encoding,
    name_origin as name_origin,
    named_encoding_origin as named_encoding_origin,
    names as names,
    read_encoding as read_encoding,
    read_named as read_named,
)
