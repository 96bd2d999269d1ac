"""Derivatives of any order, forward and reverse, of variables (static) and of tensors and functions (either mode)."""

from dy2st.incubate.autograd.functional import jvp, vjp
from dy2st.incubate.autograd.matrices import Hessian, Jacobian
from dy2st.incubate.autograd.primapi import disable_prim, enable_prim, forward_grad, grad, prim_enabled
from dy2st.incubate.autograd.taylor import jet
from dy2st.incubate.autograd.vectorize import vmap
from dy2st.missing import missing_in

__getattr__ = missing_in(__name__)

__all__ = [
    "Hessian",
    "Jacobian",
    "disable_prim",
    "enable_prim",
    "forward_grad",
    "grad",
    "jet",
    "jvp",
    "prim_enabled",
    "vjp",
    "vmap",
]
