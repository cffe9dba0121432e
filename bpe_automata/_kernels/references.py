"""Named tuples that kernels hand on as one pointer.

numba passes a tuple member by member, an array as seven words or more: hundreds of arguments for a
tuple of arrays, at each call and in the code of each function. A tuple of a class declared
`by_reference` is written into memory once, where the interpreter calls a kernel, and kernels read
of it what they need.

What is in there never changes while a kernel runs, and LLVM is told so: it need not be read again
after each store into an array. Kernels cannot make such tuples, or return them.
"""

from __future__ import annotations

import hashlib
from array import array
from ctypes import addressof, c_char
from typing import Any, TypeVar

import numpy as np
from llvmlite import binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel.models import PrimitiveModel
from numba.core.extending import lower_getattr_generic, register_model, typeof_impl, unbox
from numba.core.imputils import impl_ret_borrowed
from numba.core.pythonapi import NativeValue
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.core.typing.typeof import typeof

T = TypeVar("T", bound=type)
_POINTER = ir.IntType(8).as_pointer()
_OWNERS = 2  # of numba's arrays: the first words, null where nobody counts references
_NO_OWNERS = (0, 0)  # see `Packed`

llvm.initialize_native_asmparser()


class Reference(types.Type):  # type: ignore[misc]
    """The type of a tuple of class `kind`, whose fields have these names and types."""

    def __init__(self, kind: type, names: tuple[str, ...], fields: tuple[types.Type, ...]) -> None:
        self.kind, self.names, self.fields = kind, names, fields
        digest = hashlib.sha256(repr(fields).encode()).hexdigest()[:16]
        super().__init__(f"{kind.__module__}.{kind.__qualname__}.{digest}")


def by_reference(kind: T) -> T:
    """Declare a class of named tuples. (No two of the fields side by side may be bool.)"""
    names: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]
    told = {name: getattr(kind, name) for name in ("__doc__", "__module__", "__qualname__")}
    kind = type(kind.__name__, (kind,), told)  # type: ignore[assignment] # with a __dict__

    @typeof_impl.register(kind)
    def type_of(value: Any, context: Any) -> Reference:
        return Reference(kind, names, tuple(map(typeof, value)))

    return kind


@register_model(Reference)
class _Model(PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Reference) -> None:
        super().__init__(manager, kind, _POINTER)


@infer_getattr
class _Attribute(AttributeTemplate):  # type: ignore[misc]
    key = Reference

    def generic_resolve(self, kind: Reference, name: str) -> types.Type | None:
        return kind.fields[kind.names.index(name)] if name in kind.names else None


def _memory(context: Any, kind: Reference) -> ir.Type:
    return ir.LiteralStructType([context.get_value_type(field) for field in kind.fields])


@lower_getattr_generic(Reference)
def _lower_attribute(context: Any, builder: Any, kind: Reference, value: Any, name: str) -> Any:
    index = kind.names.index(name)
    memory = builder.bitcast(value, _memory(context, kind).as_pointer())
    field = kind.fields[index]
    found = _read(builder, cgutils.gep_inbounds(builder, memory, 0, index), field)
    return impl_ret_borrowed(context, builder, field, found)


def _read(builder: Any, pointer: Any, field: types.Type | None = None) -> Any:
    """Word by word: what LLVM is told of a load is lost where it takes the load apart. field: its
    type, where arrays may be in it: their references are not counted, which LLVM is to know."""
    kind = pointer.type.pointee
    if not isinstance(kind, ir.LiteralStructType | ir.ArrayType):
        loaded = builder.load(pointer)
        loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
        return loaded
    whole = ir.Constant(kind, ir.Undefined)
    for k in range(len(kind)):
        at = cgutils.gep_inbounds(builder, pointer, 0, k)
        if isinstance(field, types.Array) and k < _OWNERS:
            part = ir.Constant(at.type.pointee, None)
        else:
            inner = field.types[k] if isinstance(field, types.BaseTuple) else None
            part = _read(builder, at, inner)
        whole = builder.insert_value(whole, part, k)
    return whole


@unbox(Reference)
def _from_object(kind: Reference, value: Any, c: Any) -> NativeValue:
    """Of what is `packed` the address; a tuple is written into memory for this call."""
    builder = c.builder
    memory = cgutils.alloca_once(builder, _memory(c.context, kind))
    pointer = cgutils.alloca_once(builder, _POINTER)
    # All zero at first, so that there is nothing to clean up where nothing was written.
    written, failed = (cgutils.alloca_once(builder, ir.IntType(1)) for _ in range(2))
    cleanups: list[Any] = []
    address = c.pyapi.object_getattr_string(value, "address")
    with builder.if_else(cgutils.is_null(builder, address)) as (is_tuple, is_packed):
        with is_tuple:
            c.pyapi.err_clear()
            builder.store(cgutils.true_bit, written)
            for index, field in enumerate(kind.fields):
                member = c.unbox(field, c.pyapi.tuple_getitem(value, index))
                builder.store(member.value, cgutils.gep_inbounds(builder, memory, 0, index))
                builder.store(builder.or_(builder.load(failed), member.is_error), failed)
                cleanups.append(member.cleanup)
            # Behind this LLVM does not know that it was written to the memory just now: were the
            # call made a part of this function, it might read it before, for what is there is the
            # same at all times.
            opaque = ir.FunctionType(_POINTER, [_POINTER])
            plain = builder.bitcast(memory, _POINTER)
            hidden = builder.asm(opaque, "", "=r,0,~{memory}", [plain], side_effect=True)
            builder.store(hidden, pointer)
        with is_packed:
            builder.store(builder.inttoptr(c.pyapi.long_as_longlong(address), _POINTER), pointer)
            c.pyapi.decref(address)

    def cleanup() -> None:
        with builder.if_then(builder.load(written)):
            for index, field in enumerate(kind.fields):
                if cleanups[index] is not None:
                    cleanups[index]()
                member = builder.load(cgutils.gep_inbounds(builder, memory, 0, index))
                c.context.nrt.decref(builder, field, member)

    return NativeValue(builder.load(pointer), is_error=builder.load(failed), cleanup=cleanup)


class Packed:
    """A tuple declared `by_reference` that was written into memory once, for any number of calls:
    numba takes 30 us to look at all arrays of a `product.Product`, and less than 1 to take this.

    address: of the memory, which lasts as long as this does, and keeps the arrays. What a kernel
    returns must not be a part of one of them: it would not keep it."""

    __slots__ = ("_held", "_numba_type_", "address")

    def __init__(self, value: Any) -> None:
        words, held = list[int](), list[Any]()
        key = type(value), *(_written(member, words, held) for member in value)
        kind = _types.get(key)
        if kind is None:
            kind = _types.setdefault(key, typeof(value))  # one for all threads: ids stand for it
        memory = array("q", words)
        self._held, self._numba_type_ = [memory, *held], kind
        self.address = memory.buffer_info()[0]


def packed(value: Any) -> Any:
    """`Packed`, the same for the same tuple: for kernels, what they take the tuple for."""
    found: Packed | None = value.__dict__.get("packed")
    if found is None:
        found = value.__dict__["packed"] = Packed(value)
    return found


_types: dict[tuple[Any, ...], types.Type] = {}
"""What `typeof` says, which takes a millisecond for a `product.Product`, by what it looks at."""
_OWNED = 4  # a flag of arrays that makes no other type
_OPEN = 0x401  # those of one in C order that may be written to


def _written(member: Any, words: list[int], held: list[Any]) -> object:
    """Append the words of a member, as numba's models lay them out. Returns what tells its type.
    Raises TypeError for a member that is not made of words."""
    if isinstance(member, np.ndarray):
        held.append(member)
        size, flags = member.size, member.flags.num
        if size and flags & _OPEN == _OPEN:
            buffer: Any = member
            address = addressof(c_char.from_buffer(buffer))  # in a third of the time
        else:
            address = member.__array_interface__["data"][0]
        words += (*_NO_OWNERS, size, member.itemsize, address, *member.shape, *member.strides)
        return member.dtype, member.ndim, flags & ~_OWNED
    if hasattr(member, "__dict__"):  # a tuple declared `by_reference`
        inner = packed(member)
        held.append(inner)
        words.append(inner.address)
        return id(inner._numba_type_)  # which `_types` keeps
    if isinstance(member, tuple):
        return tuple(_written(part, words, held) for part in member)
    if type(member) not in (int, bool):
        raise TypeError(f"a {type(member).__name__} in a tuple that is handed on by reference")
    words.append(member)
    return type(member)
