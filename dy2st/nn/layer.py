"""Layer: a function with parameters, buffers and sublayers, the unit from which models are built.

Parameters, buffers and sublayers are attributes like any other to read and write (`layer_attributes.py`); Layer keeps
them in registries so that they can be listed, saved, moved and trained. Saving and loading is in `layer_state.py`,
moving in `layer_to.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from dy2st import dtypes
from dy2st.ir.context import current, make_current, with_layer
from dy2st.missing import missing_in
from dy2st.nn import layer_state, layer_to
from dy2st.nn.create_parameter import default_dtype, make_parameter
from dy2st.nn.hooks import HookRemoveHelper, run_post_hooks, run_pre_hooks
from dy2st.nn.layer_attributes import RegisteredAttributes
from dy2st.runtime.eager import unique_name
from dy2st.runtime.eager.device import namespace
from dy2st.runtime.eager.parameter import Parameter
from dy2st.runtime.eager.side_effect_check import in_trace, refusal
from dy2st.runtime.eager.tensor import Tensor
from dy2st.runtime.interpreter.error_locations import user_traceback

__path__: list[str] = []  # modules of paths.py are below
__getattr__ = missing_in(__name__, "dy2st.nn")


class Layer(RegisteredAttributes):
    """A function of tensors with parameters; subclass it, create sublayers in `__init__`, compute in `forward`.

    Parameters
    ----------
    name_scope
        The beginning of the layer's name; the class name in snake case when None.
    dtype
        The element type of parameters that are created without one.

    >>> import dy2st as paddle
    >>> layer = paddle.nn.Linear(3, 2)
    >>> [name for name, _ in layer.named_parameters()]
    ['weight', 'bias']
    """

    def __init__(self, name_scope: str | None = None, dtype: Any = "float32"):
        state = self.__dict__
        state["_parameters"] = {}
        state["_buffers"] = {}
        state["_sub_layers"] = {}
        state["_non_persistable_buffer_names_set"] = set()
        state["_forward_pre_hooks"] = {}
        state["_forward_post_hooks"] = {}
        state["_training"] = True
        state["_full_name"] = unique_name.generate(name_scope or _snake(type(self).__name__))
        state["_dtype"] = dtypes.dtype(dtype) if dtype is not None else default_dtype()

    # ---- running ---------------------------------------------------------------------------------------------------
    def forward(self, *inputs: Any, **keywords: Any) -> Any:
        """Compute the output; every subclass says how."""
        raise NotImplementedError(f"{type(self).__name__} has no `forward`: define it to say what the layer computes")

    def __call__(self, *inputs: Any, **keywords: Any) -> Any:
        """Run the hooks and `forward`."""
        trace = current().trace
        run = self.forward
        if trace is not None and hasattr(trace, "convert"):
            self._seen()
            run = trace.convert(run)
        before = with_layer(self)
        try:
            if self._forward_pre_hooks:
                inputs = run_pre_hooks(self, inputs, keywords)
            try:
                if trace is None or not hasattr(trace, "lent_tensors"):
                    outputs = run(*inputs, **keywords)
                else:
                    with trace.lent_tensors(self):
                        outputs = run(*inputs, **keywords)
            except Exception as error:
                if hasattr(run, "__dy2st_function__"):  # a Program: its errors show the user's frames only
                    error.__traceback__ = user_traceback(error.__traceback__)
                raise
            return run_post_hooks(self, inputs, outputs) if self._forward_post_hooks else outputs
        finally:
            make_current(before)

    @property
    def training(self) -> bool:
        """Whether the layer trains (dropout drops, batch norm measures) or is used."""
        if "_training" not in self.__dict__:
            raise AttributeError("training")
        training = self.__dict__["_training"]
        trace = current().trace
        if trace is not None and hasattr(trace, "note_layer"):
            return trace.read_attribute(self, "training", training)
        return training

    @training.setter
    def training(self, training: bool) -> None:
        trace = current().trace
        if trace is not None and hasattr(trace, "note_layer"):
            trace.write_attribute(self, "training", bool(training))
        else:
            self.__dict__["_training"] = bool(training)

    def _seen(self) -> Layer:
        """Note in a trace that it depends on the sublayers and hooks that the layer has; return the layer."""
        trace = current().trace
        if trace is not None and hasattr(trace, "note_layer"):
            trace.note_layer(self)
        return self

    def train(self, mode: bool = True) -> Layer:
        """Put this layer and all below it into training mode (or out of it); return the layer."""
        for layer in self.sublayers(include_self=True):
            layer.training = mode
        return self

    def eval(self) -> Layer:
        """Put this layer and all below it out of training mode; return the layer."""
        return self.train(False)

    def apply(self, fn: Callable[[Layer], Any]) -> Layer:
        """Call `fn` on every layer, the lowest first; return the layer."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def register_forward_pre_hook(self, hook: Callable[..., Any], *, prepend: bool = False) -> HookRemoveHelper:
        """Have `hook(layer, inputs)` called before `forward`; it may return other inputs."""
        self._refuse_in_trace("register_forward_pre_hook")
        return HookRemoveHelper(self._forward_pre_hooks, hook, first=prepend)

    def register_forward_post_hook(self, hook: Callable[..., Any], *, prepend: bool = False) -> HookRemoveHelper:
        """Have `hook(layer, inputs, output)` called after `forward`; it may return another output."""
        self._refuse_in_trace("register_forward_post_hook")
        return HookRemoveHelper(self._forward_post_hooks, hook, first=prepend)

    def _is_outside_of_trace(self) -> bool:
        """Return whether a function is being traced that has this layer from outside."""
        trace = current().trace
        return in_trace() and id(self) in trace.log.objects and id(self) not in trace.made.objects

    def _refuse_in_trace(self, name: str) -> None:
        """Raise TraceError where a Program would have to change which parts a layer has."""
        if self._is_outside_of_trace():
            raise refusal(
                f"{name}() changes a {type(self).__name__} from outside, which a Program cannot do",
                "call it outside of the function, or set an attribute that is there",
            )

    # ---- what it owns ----------------------------------------------------------------------------------------------
    def create_parameter(
        self,
        shape: Any,
        attr: Any = None,
        dtype: Any = None,
        is_bias: bool = False,
        default_initializer: Any = None,
    ) -> Any:  # a Parameter, but where `attr` is False
        """Create a parameter (assign it to an attribute to register it); None where `attr` is False."""
        dtype = self._dtype if dtype is None else dtypes.dtype(dtype)
        return make_parameter(shape, attr, dtype, is_bias, default_initializer, owner=self._full_name)

    def create_tensor(self, name: str | None = None, persistable: bool = False, dtype: Any = None) -> Tensor:
        """Create an empty tensor of this layer's dtype."""
        dtype = self._dtype if dtype is None else dtypes.dtype(dtype)
        made = Tensor(namespace().zeros((0,), dtype.numpy))
        made.name = name or unique_name.generate(f"{self._full_name}.tensor")
        made.persistable = persistable
        return made

    create_variable = create_tensor

    def add_parameter(self, name: str, parameter: Parameter | None) -> Parameter | None:
        """Register a parameter under a name; return it."""
        if parameter is not None and not isinstance(parameter, Parameter):
            raise TypeError(f"parameter {name!r} must be a Parameter or None, not {type(parameter).__name__}")
        self._refuse_in_trace("add_parameter")
        self._check_free(name, "_parameters")
        self._parameters[name] = parameter
        return parameter

    register_parameter = add_parameter

    def add_sublayer(self, name: str, sublayer: Layer | None) -> Layer | None:
        """Register a sublayer under a name; return it."""
        if sublayer is not None and not isinstance(sublayer, Layer):
            raise TypeError(f"sublayer {name!r} must be a Layer or None, not {type(sublayer).__name__}")
        self._refuse_in_trace("add_sublayer")
        self._sub_layers[str(name)] = sublayer
        return sublayer

    add_module = add_sublayer

    def register_buffer(self, name: str, tensor: Tensor | None, persistable: bool = True) -> None:
        """Register a tensor that is state but not trained; `persistable` ones are saved."""
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"buffer {name!r} must be a Tensor or None, not {type(tensor).__name__}")
        if self._is_outside_of_trace() and name in self._buffers:
            current().trace.write_attribute(self, name, tensor)
            return
        self._refuse_in_trace("register_buffer")
        self._check_free(name, "_buffers")
        self._buffers[name] = tensor
        names = self._non_persistable_buffer_names_set
        names.discard(name) if persistable else names.add(name)
        if tensor is not None and persistable:
            tensor.persistable = True

    def _check_free(self, name: str, registry: str) -> None:
        if not isinstance(name, str) or not name or "." in name:
            raise KeyError(f"a parameter or buffer needs a name without dots, not {name!r}")
        taken = name not in self.__dict__[registry] and hasattr(self, name)
        if taken:
            raise KeyError(f"{type(self).__name__} has an attribute {name!r} already")

    # ---- listing ---------------------------------------------------------------------------------------------------
    def named_children(self) -> Iterator[tuple[str, Layer]]:
        """Yield the direct sublayers with their names, each once."""
        seen: set[int] = set()
        for name, layer in self._seen()._sub_layers.items():
            if layer is not None and id(layer) not in seen:
                seen.add(id(layer))
                yield name, layer

    def children(self) -> Iterator[Layer]:
        """Yield the direct sublayers."""
        return (layer for _, layer in self.named_children())

    def named_sublayers(
        self, prefix: str = "", include_self: bool = False, layers_set: set[int] | None = None
    ) -> Iterator[tuple[str, Layer]]:
        """Yield all layers below with their dotted names, each once, parents before children."""
        seen = set() if layers_set is None else layers_set
        if include_self and id(self) not in seen:
            seen.add(id(self))
            yield prefix, self
        for name, layer in self._seen()._sub_layers.items():
            if layer is not None:
                below = f"{prefix}.{name}" if prefix else name
                yield from layer.named_sublayers(below, include_self=True, layers_set=seen)

    def sublayers(self, include_self: bool = False) -> list[Layer]:
        """Return all layers below."""
        return [layer for _, layer in self.named_sublayers(include_self=include_self)]

    def named_parameters(
        self, prefix: str = "", include_sublayers: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yield the parameters with their dotted names, each once."""
        return self._named("_parameters", prefix, include_sublayers, remove_duplicate)

    def parameters(self, include_sublayers: bool = True) -> list[Parameter]:
        """Return the parameters."""
        return [parameter for _, parameter in self.named_parameters(include_sublayers=include_sublayers)]

    def named_buffers(
        self, prefix: str = "", include_sublayers: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield the buffers with their dotted names, each once."""
        return self._named("_buffers", prefix, include_sublayers, remove_duplicate)

    def buffers(self, include_sublayers: bool = True) -> list[Tensor]:
        """Return the buffers."""
        return [buffer for _, buffer in self.named_buffers(include_sublayers=include_sublayers)]

    def _named(self, registry: str, prefix: str, include_sublayers: bool, once: bool) -> Iterator[tuple[str, Any]]:
        layers = self.named_sublayers(prefix, include_self=True) if include_sublayers else [(prefix, self)]
        seen: set[int] = set()
        for path, layer in layers:
            for name, tensor in layer.__dict__[registry].items():
                if tensor is None or (once and id(tensor) in seen):
                    continue
                seen.add(id(tensor))
                yield (f"{path}.{name}" if path else name), tensor

    def full_name(self) -> str:
        """Return the layer's name, which no other layer has."""
        return self._full_name

    def clear_gradients(self, set_to_zero: bool = True) -> None:
        """Forget the gradients of all parameters."""
        for parameter in self.parameters():
            parameter.grad = None

    # ---- state -----------------------------------------------------------------------------------------------------
    def state_dict(
        self,
        destination: dict[str, Any] | None = None,
        include_sublayers: bool = True,
        structured_name_prefix: str = "",
        use_hook: bool = True,
        keep_vars: bool = True,
    ) -> dict[str, Any]:
        """Return the parameters and persistable buffers by their dotted names; the tensors are the layer's own."""
        found = layer_state.state_dict(self, include_sublayers, structured_name_prefix, keep_vars)
        if destination is None:
            return found
        destination.update(found)
        return destination

    def to_static_state_dict(self, *arguments: Any, **keywords: Any) -> dict[str, Any]:
        """Return the parameters and all buffers, persistable or not."""
        return layer_state.state_dict(self, True, "", True, every_buffer=True)

    def set_state_dict(
        self, state_dict: dict[str, Any], use_structured_name: bool = True
    ) -> tuple[list[str], list[str]]:
        """Copy values from a state dict; return the keys that were missing and those that were not expected.

        A key that is missing or whose shape differs is skipped with a warning.
        """
        return layer_state.load(self, state_dict, use_structured_name)

    load_dict = set_state_dict
    set_dict = set_state_dict

    def to(self, device: Any = None, dtype: Any = None, blocking: bool | None = None) -> Layer:
        """Move parameters and buffers to a device, cast the floating ones to a dtype; return the layer."""
        return layer_to.move(self, device, dtype)

    def astype(self, dtype: Any) -> Layer:
        """Cast the floating parameters and buffers; return the layer."""
        return layer_to.move(self, None, dtype)

    def float(self) -> Layer:
        """Cast the floating parameters and buffers to float32; return the layer."""
        return self.astype("float32")

    def float16(self) -> Layer:
        """Cast the floating parameters and buffers to float16; return the layer."""
        return self.astype("float16")

    def bfloat16(self) -> Layer:
        """Cast the floating parameters and buffers to bfloat16; return the layer."""
        return self.astype("bfloat16")

    def double(self) -> Layer:
        """Cast the floating parameters and buffers to float64; return the layer."""
        return self.astype("float64")

    # ---- printing --------------------------------------------------------------------------------------------------
    def extra_repr(self) -> str:
        """Return what stands between the brackets of the layer's text; subclasses say more."""
        return ""

    def __repr__(self) -> str:
        below = [f"({name}): {_indented(repr(layer))}" for name, layer in self._sub_layers.items()]
        inside = [line for line in (self.extra_repr(),) if line]
        if not below:
            return f"{type(self).__name__}({', '.join(inside)})"
        return "\n  ".join([f"{type(self).__name__}({', '.join(inside)}", *below]) + "\n)"


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")


def _snake(name: str) -> str:
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()
