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
from typing import Any, TypeVar

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

llvm.initialize_native_asmparser()


class Reference(types.Type):  # type: ignore[misc]
    """The type of a tuple of class `kind`, whose fields have these names and types."""

    def __init__(self, kind: type, names: tuple[str, ...], fields: tuple[types.Type, ...]) -> None:
        self.kind, self.names, self.fields = kind, names, fields
        digest = hashlib.sha256(repr(fields).encode()).hexdigest()[:16]
        super().__init__(f"{kind.__module__}.{kind.__qualname__}.{digest}")


def by_reference(kind: T) -> T:
    """Declare a class of named tuples."""
    names: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]

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
    place = kind.names.index(name)
    memory = builder.bitcast(value, _memory(context, kind).as_pointer())
    found = _read(builder, cgutils.gep_inbounds(builder, memory, 0, place))
    return impl_ret_borrowed(context, builder, kind.fields[place], found)


def _read(builder: Any, pointer: Any) -> Any:
    """Word by word: what LLVM is told of a load is lost where it takes the load apart."""
    kind = pointer.type.pointee
    if not isinstance(kind, ir.LiteralStructType | ir.ArrayType):
        loaded = builder.load(pointer)
        loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
        return loaded
    whole = ir.Constant(kind, ir.Undefined)
    for k in range(len(kind)):
        part = _read(builder, cgutils.gep_inbounds(builder, pointer, 0, k))
        whole = builder.insert_value(whole, part, k)
    return whole


@unbox(Reference)
def _from_object(kind: Reference, value: Any, c: Any) -> NativeValue:
    memory = cgutils.alloca_once(c.builder, _memory(c.context, kind))
    failed, members = cgutils.false_bit, []
    for place, field in enumerate(kind.fields):
        member = c.unbox(field, c.pyapi.tuple_getitem(value, place))
        c.builder.store(member.value, cgutils.gep_inbounds(c.builder, memory, 0, place))
        failed = c.builder.or_(failed, member.is_error)
        members.append((field, member))

    def cleanup() -> None:
        for field, member in members:
            if member.cleanup is not None:
                member.cleanup()
            c.context.nrt.decref(c.builder, field, member.value)

    # Behind this LLVM does not know that it was written to the memory just now: were the call made
    # a part of this function, it might read it before, for what is there is the same at all times.
    pointer = c.builder.bitcast(memory, _POINTER)
    opaque = ir.FunctionType(_POINTER, [_POINTER])
    pointer = c.builder.asm(opaque, "", "=r,0,~{memory}", [pointer], side_effect=True)
    return NativeValue(pointer, is_error=failed, cleanup=cleanup)
