"""Addresses of arrays in compiled loops.

A compiled loop looks at every array that it is given, at each call, and that takes longer than to find a node or to
count two hops. So what is called very often takes the address of a record, which has the addresses of arrays. Who makes
a record keeps its arrays alive, and sees to it that places are inside them: nothing is checked here.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic


def _pointing(_: Any, address: Any, example: Any) -> Any:

    def built(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.inttoptr(given[0], context.get_value_type(signature.return_type))

    pointer: Any = types.CPointer
    return pointer(example)(types.intp, example), built


pointer_to: Any = intrinsic(_pointing)
"""`pointer_to(address, example)` is the address as a pointer to values of the type of the example."""


def _fetching(_: Any, pointer: Any, place: Any) -> Any:

    def built(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        at = builder.bitcast(builder.gep(given[0], [given[1]]), byte)
        # To read, to be kept near, and data rather than code.
        builder.call(prefetch, [at, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(pointer, place), built


fetch: Any = intrinsic(_fetching)
"""`fetch(pointer, place)` tells the processor that the value at a place will be read soon. It need not exist."""


@numba.njit(cache=True)
def addresses(address: int) -> Any:
    """A pointer to numbers of 64 bits, such as other addresses."""
    return pointer_to(address, np.int64(0))


@numba.njit(cache=True)
def numbers(address: int) -> Any:
    """A pointer to numbers of 32 bits: those of nodes and edges."""
    return pointer_to(address, np.int32(0))


@numba.njit(cache=True)
def small_numbers(address: int) -> Any:
    """A pointer to single bytes."""
    return pointer_to(address, np.uint8(0))
