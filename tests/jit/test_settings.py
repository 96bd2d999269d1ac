"""Attributes of the package's objects that are set between calls, or in the function, are seen: static is eager.

`ROWS` has all public classes whose objects are handed to a function; each attribute that such an object has is set to
something else, and the calls before and after are compared.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import TraceError
from dy2st.jit.static_function import FallbackWarning

T = paddle.to_tensor
nn, lr, optimizer, distribution = paddle.nn, paddle.optimizer.lr, paddle.optimizer, paddle.distribution
Made = dict[str, Any]


def matrix() -> Any:
    values = nn.initializer.Assign(np.array([[1.0, 2.0], [3.0, 4.0]], np.float32))
    return paddle.create_parameter([2, 2], "float32", default_initializer=values)


def trained(part: Any = None, **keywords: Any) -> Made:
    """Return a weight and what trains it; `part` is what changes, the optimizer where it is None."""
    weight = matrix()
    kind = keywords.pop("kind", optimizer.SGD)
    made = kind(**{"learning_rate": 0.01, "parameters": [weight], **keywords})
    return {"changes": made if part is None else part, "optimizer": made, "weight": weight}


def step(made: Made, x: Any) -> list[Any]:
    loss = ((x @ made["weight"]) ** 2).sum()
    loss.backward()
    made["optimizer"].step()
    made["optimizer"].clear_grad()
    return [loss, made["weight"] * 1.0]


def step_and_schedule(made: Made, x: Any) -> list[Any]:
    found = step(made, x)
    made["changes"].step()
    return found


def scaled_step(made: Made, x: Any) -> list[Any]:
    loss = ((x @ made["weight"]) ** 2).sum()
    made["changes"].scale(loss).backward()
    made["changes"].step(made["optimizer"])
    made["changes"].update()
    made["optimizer"].clear_grad()
    return [loss, made["weight"] * 1.0]


def one(make: Callable[..., Any], *args: Any, **keywords: Any) -> Callable[[], Made]:
    return lambda: {"changes": make(*args, **keywords)}


def part_of_step(key: str, make: Callable[[], Any]) -> Callable[[], Made]:
    def made() -> Made:
        part = make()
        return trained(part, **{key: part})

    return made


def of_distribution(*values: Any) -> Callable[[Made, Any], list[Any]]:
    def use(made: Made, x: Any) -> list[Any]:
        d = made["changes"]
        at = [d.log_prob(T(value)) for value in values] or [d.log_prob(x)]
        return [*at, d.entropy(), d.sample([2])]

    return use


def initial(made: Made, x: Any) -> Any:
    return paddle.create_parameter([2, 2], "float32", default_initializer=made["changes"]) + x


SCHEDULES: dict[str, tuple[Any, ...]] = {
    "NoamDecay": (4, 3), "PiecewiseDecay": ([1, 2, 3], [0.1, 0.2, 0.3, 0.4]), "NaturalExpDecay": (0.1, 0.2),
    "InverseTimeDecay": (0.1, 0.2), "ExponentialDecay": (0.1, 0.2), "PolynomialDecay": (0.1, 3), "StepDecay": (0.1, 2),
    "MultiStepDecay": (0.1, [1, 3]), "LambdaDecay": (0.1, lambda epoch: 0.9**epoch), "LinearLR": (0.1, 4),
    "MultiplicativeDecay": (0.1, lambda epoch: 0.9), "CosineAnnealingDecay": (0.1, 4),
    "LinearWarmup": (0.1, 3, 0.0, 0.1),
    "OneCycleLR": (0.1, 10), "CyclicLR": (0.01, 0.1, 3), "CosineAnnealingWarmRestarts": (0.1, 3),
}  # fmt: skip
ROWS: dict[str, tuple[Callable[[], Made], Callable[[Made, Any], Any]]] = {
    **{f"optimizer.{name}": (lambda name=name: trained(kind=getattr(optimizer, name)), step) for name in (
        "SGD", "Momentum", "ASGD", "Rprop", "Adam", "AdamW", "Adamax", "Lamb", "NAdam", "RAdam", "Adagrad", "Adadelta",
        "RMSProp",
    )},
    **{f"optimizer.lr.{name}": (part_of_step("learning_rate", lambda name=name, args=args: getattr(lr, name)(*args)),
                                step_and_schedule) for name, args in SCHEDULES.items()},
    "regularizer.L1Decay": (part_of_step("weight_decay", lambda: paddle.regularizer.L1Decay(0.3)), step),
    "regularizer.L2Decay": (part_of_step("weight_decay", lambda: paddle.regularizer.L2Decay(0.3)), step),
    "nn.ClipGradByValue": (part_of_step("grad_clip", lambda: nn.ClipGradByValue(0.3)), step),
    "nn.ClipGradByNorm": (part_of_step("grad_clip", lambda: nn.ClipGradByNorm(0.3)), step),
    "nn.ClipGradByGlobalNorm": (part_of_step("grad_clip", lambda: nn.ClipGradByGlobalNorm(0.3)), step),
    "amp.GradScaler": (lambda: trained(paddle.amp.GradScaler(init_loss_scaling=8.0)), scaled_step),
    "metric.Accuracy": (one(paddle.metric.Accuracy), lambda made, x: made["changes"].compute(x, T([[1], [0]]))),
    **{f"distribution.{name}": (one(getattr(distribution, name), 0.25, 1.5), of_distribution())
       for name in ("Normal", "LogNormal", "Uniform", "Laplace", "Gumbel", "Cauchy")},
    "distribution.Exponential": (one(distribution.Exponential, 2.0), of_distribution()),
    "distribution.Bernoulli": (one(distribution.Bernoulli, 0.3), of_distribution(1.0)),
    "distribution.Geometric": (one(distribution.Geometric, 0.3), of_distribution(1.0)),
    "distribution.Categorical": (lambda: {"changes": distribution.Categorical(T([0.2, 0.3]))}, of_distribution([1])),
    **{f"distribution.{name}": (one(getattr(distribution, name), *args), of_distribution()) for name, args in (
        ("Beta", (0.8, 1.5)), ("Gamma", (1.5, 2.0)), ("Chi2", (3.0,)), ("StudentT", (5.0, 0.2, 1.5)),
        ("ContinuousBernoulli", (0.3,)),
    )},
    "distribution.Poisson": (one(distribution.Poisson, 2.0), of_distribution(1.0)),
    "distribution.Binomial": (one(distribution.Binomial, 5, 0.3), of_distribution(1.0)),
    "distribution.Dirichlet": (lambda: {"changes": distribution.Dirichlet(T([0.8, 1.2]))}, of_distribution([0.4, 0.6])),
    "distribution.Multinomial": (lambda: {"changes": distribution.Multinomial(3, T([0.2, 0.8]))},
                                 of_distribution([1.0, 2.0])),
    "distribution.MultivariateNormal": (lambda: {"changes": distribution.MultivariateNormal(
        T([0.1, 0.2]), covariance_matrix=T([[1.0, 0.2], [0.2, 2.0]]))}, of_distribution()),
    "distribution.AffineTransform": (lambda: {"changes": distribution.AffineTransform(T(0.5), T(2.0))},
                                     lambda made, x: made["changes"].forward(x)),
    "distribution.PowerTransform": (lambda: {"changes": distribution.PowerTransform(T(2.0))},
                                    lambda made, x: made["changes"].forward(x)),
    **{f"nn.initializer.{name}": (one(getattr(nn.initializer, name), *args), initial) for name, args in (
        ("Constant", (2.0,)), ("Uniform", (-1.0, 1.0)), ("Normal", (0.0, 1.0)), ("TruncatedNormal", (0.0, 1.0)),
        ("XavierUniform", ()), ("XavierNormal", ()), ("KaimingUniform", ()), ("KaimingNormal", ()), ("Orthogonal", ()),
    )},
    "nn.ParamAttr": (one(paddle.ParamAttr), lambda made, x: paddle.create_parameter(
        [2, 2], "float32", attr=made["changes"]) + x),
}  # fmt: skip
ELSEWHERE = {
    "optimizer.Optimizer": "a base", "optimizer.LBFGS": "refused in a function", "optimizer.lr.LRScheduler": "a base",
    "optimizer.lr.ReduceOnPlateau": "its step takes a loss, as a number", "distribution.Distribution": "a base",
    "metric.Metric": "a base", "metric.Precision": "NumPy only", "metric.Recall": "NumPy only",
    "metric.Auc": "NumPy only", "nn.initializer.Initializer": "a base", "nn.initializer.Assign": "an array",
    "nn.initializer.Dirac": "for convolutions", "nn.initializer.Bilinear": "for convolutions",
    **dict.fromkeys(("distribution.ExponentialFamily", "distribution.Transform"), "a base"),
    **{f"distribution.{name}": "made of others, which have rows" for name in (
        "Independent", "IndependentTransform", "TransformedDistribution", "ChainTransform", "StackTransform",
    )},
    **{f"distribution.{name}Transform": "without settings" for name in (
        "Abs", "Exp", "Sigmoid", "Softmax", "StickBreaking", "Tanh", "Reshape",
    )},
    "regularizer.WeightDecayRegularizer": "a base", "regularizer.Settable": "a base",
}  # fmt: skip


def test_every_public_class_with_settings_has_a_row() -> None:
    families = {
        "optimizer": optimizer, "optimizer.lr": lr, "distribution": distribution, "metric": paddle.metric,
        "nn.initializer": nn.initializer, "regularizer": paddle.regularizer,
    }  # fmt: skip
    for family, module in families.items():
        found = [n for n in dir(module) if isinstance(getattr(module, n), type) and not n.startswith("_")]
        assert found
        for name in found:
            if getattr(module, name).__module__.startswith("dy2st."):
                here = [r.rpartition(".")[2] for r in (*ROWS, *ELSEWHERE) if r.rpartition(".")[0] == family]
                assert getattr(module, name) in [getattr(module, n) for n in here], f"{family}.{name}"


def other(name: str, value: Any) -> Any:
    """Return another value for an attribute; None where there is none."""
    special = {
        "regularization": lambda: paddle.regularizer.L2Decay(0.5),
        "regularizer": lambda: paddle.regularizer.L2Decay(0.5),
        "_grad_clip": lambda: nn.ClipGradByNorm(0.1),
        "initializer": lambda: nn.initializer.Constant(0.7),
        "optimize_attr": lambda: {"learning_rate": 3.0},
        "_options": lambda: {k: x * 0.9 if isinstance(x, float) else x for k, x in value.items()},
        "_learning_rate": lambda: lr.StepDecay(0.1, 2) if isinstance(value, float) else None,
    }
    if name in special:
        return special[name]()
    if isinstance(value, bool):
        return not value
    if isinstance(value, paddle.Tensor):
        return value.detach() + 0.25
    return value + 1 if isinstance(value, int) else value * 1.5 + 0.1 if isinstance(value, float) else None


def settings() -> Iterator[Any]:
    for row, (make, _) in ROWS.items():
        for name, value in vars(make()["changes"]).items():
            if name not in ("verbose", "_own_lr_tensor", "_tensor") and other(name, value) is not None:
                yield pytest.param(row, name, id=f"{row}.{name}")


def numbers(x: Any) -> Any:
    return [numbers(y) for y in x] if isinstance(x, (list, tuple)) else np.asarray(x.numpy())


def results(row: str, name: str, way: str, static: bool) -> list[Any]:
    """Return what four calls give; the attribute is set before the third, or in the function."""
    paddle.seed(3)
    make, use = ROWS[row]
    made = make()
    value = other(name, getattr(made["changes"], name))

    def between(x: Any) -> Any:
        return use(made, x)

    def inside(x: Any) -> Any:
        setattr(made["changes"], name, value)
        return use(made, x)

    def in_a_branch(x: Any) -> Any:
        if x.sum() > 0:
            setattr(made["changes"], name, value)
        return use(made, x)

    function = {"between": between, "inside": inside, "in a branch": in_a_branch}[way]
    run = paddle.jit.to_static(function) if static else function
    found: list[Any] = []
    for call in range(4):
        if call == 2 and way == "between":
            setattr(made["changes"], name, value)
        try:
            found.append(numbers(run(T([[0.3, 0.7], [0.2, 0.9]]))))
        except (ValueError, TypeError, RuntimeError) as error:
            found.append(type(error).__name__)
    return found


def check(row: str, name: str, way: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is set in a function that the package's code reads runs eagerly
        static, eager = results(row, name, way, True), results(row, name, way, False)
    for a, b in zip(static, eager, strict=True):
        if isinstance(a, str) or isinstance(b, str):
            assert a == b
        else:
            for x, y in zip(a, b, strict=True):
                np.testing.assert_allclose(x, y, rtol=2e-4, atol=1e-6)


@pytest.mark.parametrize(("row", "name"), list(settings()))
def test_a_setting_that_changes_between_calls_is_seen(row: str, name: str) -> None:
    check(row, name, "between")


@pytest.mark.slow
@pytest.mark.parametrize("way", ["inside", "in a branch"])
@pytest.mark.parametrize(("row", "name"), list(settings()))
def test_a_setting_that_the_function_changes_is_seen(row: str, name: str, way: str) -> None:
    check(row, name, way)


@pytest.mark.parametrize("name", ["regularizer", "need_clip", "optimize_attr"])
def test_what_an_optimizer_asks_of_a_parameter_may_change(name: str) -> None:
    def losses(static: bool) -> list[float]:
        made = trained(grad_clip=nn.ClipGradByNorm(0.3))
        run = (
            paddle.jit.to_static(lambda x: step(made, x)[0], full_graph=True) if static else lambda x: step(made, x)[0]
        )
        found = [run(T([[1.0, 2.0]])).item() for _ in range(3)]
        setattr(made["weight"], name, other(name, getattr(made["weight"], name)))
        found += [run(T([[1.0, 2.0]])).item() for _ in range(3)]
        made["weight"].optimize_attr["learning_rate"] = 0.5
        return found + [run(T([[1.0, 2.0]])).item() for _ in range(3)]

    np.testing.assert_allclose(losses(True), losses(False), rtol=1e-6)


def test_new_parameters_of_a_distribution_need_no_new_program() -> None:
    normal = distribution.Normal(0.0, 1.0)
    static = paddle.jit.to_static(lambda x: normal.log_prob(x), full_graph=True)
    for turn in range(1, 5):
        normal.loc, normal.scale = T(float(turn)), T(turn * 0.5)
        np.testing.assert_allclose(static(T([0.5])).numpy(), normal.log_prob(T([0.5])).numpy(), rtol=1e-6)
    assert len(static.program_cache) == 1


def test_a_divergence_sees_what_its_distributions_have() -> None:
    normal = distribution.Normal(0.0, 1.0)
    static = paddle.jit.to_static(
        lambda x: distribution.kl_divergence(normal, distribution.Normal(x, 1.0)), full_graph=True
    )
    for turn in range(1, 4):
        normal.scale = T(float(turn))
        want = distribution.kl_divergence(normal, distribution.Normal(T(0.5), 1.0))
        np.testing.assert_allclose(static(T(0.5)).numpy(), want.numpy(), rtol=1e-6)


def test_a_tensor_that_two_attributes_share_is_told_apart_when_one_changes() -> None:
    class Pair:
        pass

    pair: Any = Pair()
    pair.a = pair.b = T([1.0, 2.0])
    static = paddle.jit.to_static(lambda x: x + pair.a * 10 + pair.b, full_graph=True)
    assert static(T([0.0, 0.0])).tolist() == [11.0, 22.0]
    pair.a = T([5.0, 6.0])
    assert static(T([0.0, 0.0])).tolist() == [51.0, 62.0]
    pair.b = T([7.0, 8.0])
    assert static(T([0.0, 0.0])).tolist() == [57.0, 68.0]
    assert "which tensor b is" in str(static.explain()) or "which tensor a is" in str(static.explain())


def test_a_rate_that_a_schedule_gives_changes_with_its_epoch() -> None:
    schedule = lr.StepDecay(0.5, step_size=1)
    static = paddle.jit.to_static(lambda x: x * schedule.get_lr(), full_graph=True)
    for _ in range(4):
        assert static(T(1.0)).item() == pytest.approx(schedule.get_lr())
        schedule.step()
    assert len(static.program_cache) == 2


def test_a_schedule_is_read_after_its_step_as_the_call_will_leave_it() -> None:
    schedule = lr.StepDecay(0.5, step_size=1)

    @paddle.jit.to_static(full_graph=True)
    def function(x: Any) -> Any:
        schedule.step()
        return x * schedule.last_epoch

    assert [float(function(T(1.0))) for _ in range(3)] == [1.0, 2.0, 3.0]
    assert schedule.last_epoch == 3


def test_a_setting_that_the_function_sets_is_refused_where_the_package_reads_it() -> None:
    dropout = nn.Dropout(0.5)

    @paddle.jit.to_static(full_graph=True)
    def function(x: Any) -> Any:
        dropout.p = 0.25
        return dropout(x)

    with pytest.raises(TraceError, match=r"\.p of a Dropout is set in a function in which code that is not converted"):
        function(T([1.0]))
    assert dropout.p == 0.5


def test_a_metric_is_not_reset_while_tracing() -> None:
    metric = paddle.metric.Accuracy()
    metric.total, metric.count = [3.0], [4]

    @paddle.jit.to_static(full_graph=True)
    def function(x: Any) -> Any:
        metric.reset()
        return x

    with pytest.raises(TraceError, match=r"\.total of a Accuracy is set by code that is not converted"):
        function(T(1.0))
    assert metric.count == [4]


def test_a_rate_that_a_function_sets_is_the_one_that_it_reads() -> None:
    schedule = lr.StepDecay(0.5, step_size=1)

    @paddle.jit.to_static(full_graph=True)
    def function(x: Any) -> Any:
        if x > 0:
            schedule.last_lr = 0.25
        return x * schedule()

    for value, rate in ((1.0, 0.25), (-1.0, 0.5), (2.0, 0.25)):
        schedule.last_lr = 0.5
        assert float(function(T(value))) == value * rate
        assert schedule.last_lr == float(schedule.tensor) == rate


def test_the_state_of_a_schedule_is_not_restored_in_a_function() -> None:
    schedule = lr.StepDecay(0.5, step_size=1)
    state = schedule.state_dict()
    static = paddle.jit.to_static(lambda x: (schedule.set_state_dict(state), x)[1], full_graph=True)
    with pytest.raises(TraceError, match="set_state_dict"):
        static(T(1.0))


def test_a_parameter_that_is_made_at_each_call_is_made_at_each_call() -> None:
    def function(x: Any) -> Any:
        return nn.Linear(2, 2)(x)

    static = paddle.jit.to_static(function)
    x = paddle.ones([1, 2])
    paddle.seed(5)
    with pytest.warns(FallbackWarning, match="a parameter is made at each call"):
        found = [static(x).tolist() for _ in range(2)]
    paddle.seed(5)
    assert found == [function(x).tolist() for _ in range(2)]


def test_a_layer_that_is_made_once_is_part_of_the_program() -> None:
    class Late(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.inner: Any = None

        def forward(self, x: Any) -> Any:
            if self.inner is None:
                self.inner = nn.Linear(2, 2)
            return self.inner(x)

    late = Late()
    static = paddle.jit.to_static(late, full_graph=True)
    found = [static(paddle.ones([1, 2])).tolist() for _ in range(3)]
    assert found[0] == found[1] == found[2] == late.inner(paddle.ones([1, 2])).tolist()
