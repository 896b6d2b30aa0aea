"""A vector of sixteen numbers, one for each lane, as a value that compiled code can hold.

Left to itself the compiler makes short vectors of a loop over lanes, checks each time whether
arrays overlap, and keeps sums in memory. A `Vector` stays in registers while states are summed
over. An array's last axis are the lanes; its rows are counted over all the other axes.
"""

import operator
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, models, overload, register_model

LANES = 16
_LAYOUT = ir.VectorType(ir.DoubleType(), LANES)
_instruction: Any = intrinsic  # callers leave the first argument out, which no type checker knows
_FUSED = ("contract",)  # a product and a sum may become one instruction, as in `fused_kernel`


class _VectorType(types.Type):
    def __init__(self):
        super().__init__("Vector")


VECTOR = _VectorType()


@register_model(_VectorType)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, _LAYOUT)


def _pointer(context, builder, signature, arguments):
    """Where a row of an array begins."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    first = builder.mul(arguments[1], ir.Constant(arguments[1].type, LANES))
    return builder.bitcast(builder.gep(array.data, [first]), _LAYOUT.as_pointer())


@_instruction
def load(typing, array, row):
    """The numbers in a row of a C-contiguous array."""

    def build(context, builder, signature, arguments):
        return builder.load(_pointer(context, builder, signature, arguments), align=8)

    return VECTOR(array, types.intp), build


@_instruction
def store(typing, array, row, vector):
    """Writes a row."""

    def build(context, builder, signature, arguments):
        builder.store(arguments[2], _pointer(context, builder, signature, arguments), align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, VECTOR), build


@_instruction
def spread(typing, number):
    """The same number in every lane."""

    def build(context, builder, signature, arguments):
        index = ir.IntType(32)
        one = builder.insert_element(
            ir.Constant(_LAYOUT, ir.Undefined), arguments[0], ir.Constant(index, 0)
        )
        everywhere = ir.Constant(ir.VectorType(index, LANES), [0] * LANES)
        return builder.shuffle_vector(one, ir.Constant(_LAYOUT, ir.Undefined), everywhere)

    return VECTOR(types.float64), build


@_instruction
def where_positive(typing, condition, vector):
    """The vector, and zero in lanes where the condition is not positive."""

    def build(context, builder, signature, arguments):
        zero = ir.Constant(_LAYOUT, [0.0] * LANES)
        positive = builder.fcmp_ordered(">", arguments[0], zero)
        return builder.select(positive, arguments[1], zero)

    return VECTOR(VECTOR, VECTOR), build


@_instruction
def power_of_two(typing, exponent):
    """2 to an integer from -1022 to 1023, by its bits: a loop over it becomes vectors."""

    def build(context, builder, signature, arguments):
        bits = ir.IntType(64)
        biased = builder.add(arguments[0], ir.Constant(bits, 1023))
        return builder.bitcast(builder.shl(biased, ir.Constant(bits, 52)), ir.DoubleType())

    return types.float64(types.int64), build


def _lane_by_lane(operation, instruction):
    """Teaches `operation` to take two vectors."""

    @_instruction
    def apply(typing, left, right):
        def build(context, builder, signature, arguments):
            return getattr(builder, instruction)(*arguments, flags=_FUSED)

        return VECTOR(VECTOR, VECTOR), build

    @overload(operation)
    def choose(left, right):
        if left is VECTOR and right is VECTOR:
            return lambda left, right: apply(left, right)
        return None


_lane_by_lane(operator.add, "fadd")
_lane_by_lane(operator.sub, "fsub")
_lane_by_lane(operator.mul, "fmul")
_lane_by_lane(operator.truediv, "fdiv")
