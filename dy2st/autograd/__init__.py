"""Derivatives of tensors: `backward`, `grad`, `jacobian`, `hessian`; grad mode."""

from dy2st.autograd.jacobian import hessian, jacobian
from dy2st.autograd.py_layer import PyLayer, PyLayerContext
from dy2st.missing import missing_in
from dy2st.runtime.autograd_engine.backward import backward, grad
from dy2st.runtime.eager.saved_tensor_hooks import saved_tensors_hooks
from dy2st.runtime.eager.tape.grad_mode import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from dy2st.runtime.tracer.recording.loop_checkpointing import checkpoint_policy

Function = PyLayer

__getattr__ = missing_in(__name__)

__all__ = [
    "Function",
    "PyLayer",
    "PyLayerContext",
    "backward",
    "checkpoint_policy",
    "enable_grad",
    "grad",
    "hessian",
    "is_grad_enabled",
    "jacobian",
    "no_grad",
    "saved_tensors_hooks",
    "set_grad_enabled",
]
