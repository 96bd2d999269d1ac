"""The cases of a project: what builds a model, and what it is called with.

Models of PaddleClas are the builders that its package of backbones names, those of PaddleScience the examples in the
docstrings of its classes; what PARL's algorithms and PaddleScience's equations are made with is written here.
"""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Case = dict[str, Any]
"""name, group, kind ("module" or "model"), and the module to import or the source that sets `model` and `inputs`."""


def cases_of(project: Path, every: bool = False) -> list[Case]:
    """Return the cases of a checkout; `every` builder of a file, not its first alone."""
    found: list[Case] = []
    for package, models in (("ppcls", _paddleclas), ("parl", _parl), ("ppsci", _paddlescience)):
        if (project / package).is_dir():
            found += [*_modules(project, package), *models(project, every)]
    if not found:
        raise SystemExit(f"{project} is no checkout of PaddleClas, PARL or PaddleScience")
    return found


def _modules(project: Path, package: str) -> Iterator[Case]:
    for path in sorted((project / package).rglob("*.py")):
        parts = path.relative_to(project).with_suffix("").parts
        if "tests" not in parts and all(part.isidentifier() for part in parts):
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            yield {"name": f"import {name}", "group": package, "kind": "module", "module": name}


def _model(name: str, group: str, source: str, **more: Any) -> Case:
    return {"name": name, "group": group, "kind": "model", "source": "import paddle, numpy as np\n" + source, **more}


# ---- PaddleClas --------------------------------------------------------------------------------------------------
_SIZES = {"InceptionV3": 299, "InceptionV4": 299, "AdaFace": 112, "SVTR": (32, 100), "WideResNet": 32}


def _paddleclas(project: Path, every: bool) -> Iterator[Case]:
    tree = ast.parse((project / "ppcls/arch/backbone/__init__.py").read_bytes())
    for node in tree.body:
        if not isinstance(node, ast.ImportFrom) or node.level != 1 or not node.module or "." not in node.module:
            continue
        for builder in node.names if every else node.names[:1]:
            size: Any = next((s for start, s in _SIZES.items() if builder.name.startswith(start)), None)
            if size is None:
                size = int((re.search(r"_(224|256|288|336|384)\b", builder.name) or [0, 224])[1])
            height, width = size if isinstance(size, tuple) else (size, size)
            made = "" if builder.name.startswith(("AdaFace", "PPLCNetBaseNet")) else "class_num=10"
            yield _model(
                f"{node.module}.{builder.name}",
                "ppcls",
                "from ppcls.utils import logger\nlogger.init_logger()\n"
                f"from ppcls.arch.backbone.{node.module} import {builder.name}\n"
                f"model = {builder.name}({made})\n"
                f"inputs = (paddle.rand([2, 3, {height}, {width}]),)\n",
            )


# ---- PARL --------------------------------------------------------------------------------------------------------
_BOX = "class Box:\n    shape = (4,)\n    n = 4\n"
_GAME = """
class Game:
    def getBoardSize(self): return 6, 7
    def getActionSize(self): return 7
class Args:
    num_channels, dropout = 16, 0.3
"""
_ATARI = "paddle.rand([2, 4, 84, 84]) * 255"
_PARL_MODELS = {
    "QuickStart/cartpole_model": ("CartpoleModel(4, 2)", {"forward": "paddle.rand([3, 4])"}),
    "DQN/cartpole_model": ("CartpoleModel(4, 2)", {"forward": "paddle.rand([3, 4])"}),
    "DQN_variant/atari_model": ("AtariModel(6, dueling=True)", {"forward": _ATARI}),
    "A2C/atari_model": ("AtariModel(6)", dict.fromkeys(("policy", "value", "policy_and_value"), _ATARI)),
    "IMPALA/atari_model": (
        "AtariModel(6)",
        dict.fromkeys(("policy", "value"), "paddle.rand([2, 4, 42, 42]) * 255"),
    ),
    "PPO/atari_model": ("AtariModel(Box, Box)", dict.fromkeys(("policy", "value"), _ATARI)),
    "PPO/mujoco_model": ("MujocoModel(Box, Box)", dict.fromkeys(("policy", "value"), "paddle.rand([3, 4])")),
    **{
        f"{name}/{file}": (
            f"{made}(6, 3)",
            {"policy": "paddle.rand([3, 6])", "value": "paddle.rand([3, 6]), paddle.rand([3, 3])"},
        )
        for name, file, made in (
            ("SAC", "mujoco_model", "MujocoModel"),
            ("TD3", "mujoco_model", "MujocoModel"),
            ("OAC", "mujoco_model", "MujocoModel"),
            ("CQL", "mujoco_model", "MujocoModel"),
            ("DDPG", "mujoco_model", "MujocoModel"),
            ("CARLA_SAC", "carla_model", "CarlaModel"),
        )
    },
    "ES/mujoco_model": ("MujocoModel(6, 3)", {"forward": "paddle.rand([3, 6])"}),
    "QMIX/rnn_model": ("RNNModel(8, 5)", {"forward": "paddle.rand([3, 8]), paddle.rand([3, 64])"}),
    "QMIX/qmixer_model": ("QMixerModel(3, 10)", {"forward": "paddle.rand([2, 4, 3]), paddle.rand([2, 4, 10])"}),
    "AlphaZero/connect4_model": ("Connect4Model(Game(), Args())", {"forward": "paddle.rand([4, 6, 7])"}),
    "MADDPG/simple_model": (
        "MAModel(6, 3, 15, False)",
        {"policy": "paddle.rand([3, 6])", "value": "[paddle.rand([3, 6])], [paddle.rand([3, 9])]"},
    ),
}
_METHOD = """
class Method(paddle.nn.Layer):
    def __init__(self, of):
        super().__init__()
        self.of = of
    def forward(self, *given):
        return self.of.METHOD(*given)
model = Method(model)
"""
_LEARNS = """
class Learns(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.model = model
        self.algorithm = ALGORITHM
    def forward(self, *given):
        return self.algorithm.learn(*given)
    def synchronise(self):
        for name, value in vars(self.algorithm).items():
            if "target" in name:
                value.set_state_dict(self.model.state_dict())
model = Learns()
"""
_ACTS = "paddle.rand([8, 6]), paddle.rand([8, 3]), paddle.rand([8, 1]), paddle.rand([8, 6]), paddle.zeros([8, 1])"
_CHOICES = "paddle.rand([8, 4]), paddle.randint(0, 2, [8, 1])"
_PARL_ALGORITHMS = {
    "DQN": ("DQN/cartpole_model", "parl.algorithms.DQN(model, gamma=0.9, lr=1e-3)",
            _CHOICES + ", paddle.rand([8, 1]), paddle.rand([8, 4]), paddle.zeros([8, 1])"),
    "DDQN": ("DQN/cartpole_model", "parl.algorithms.DDQN(model, gamma=0.9, lr=1e-3)",
             _CHOICES + ", paddle.rand([8, 1]), paddle.rand([8, 4]), paddle.zeros([8, 1])"),
    "PolicyGradient": ("QuickStart/cartpole_model", "parl.algorithms.PolicyGradient(model, lr=1e-3)",
                       "paddle.rand([8, 4]), paddle.randint(0, 2, [8, 1]), paddle.rand([8, 1])"),
    "DDPG": ("DDPG/mujoco_model",
             "parl.algorithms.DDPG(model, gamma=0.9, tau=0.01, actor_lr=1e-3, critic_lr=1e-3)", _ACTS),
    "TD3": ("TD3/mujoco_model",
            "parl.algorithms.TD3(model, gamma=0.9, tau=0.01, actor_lr=1e-3, critic_lr=1e-3)", _ACTS),
    "SAC": ("SAC/mujoco_model",
            "parl.algorithms.SAC(model, gamma=0.9, tau=0.01, alpha=0.2, actor_lr=1e-3, critic_lr=1e-3)", _ACTS),
    "PPO": ("PPO/mujoco_model", "parl.algorithms.PPO(model, continuous_action=True)",
            "paddle.rand([8, 4]), paddle.rand([8, 4]), paddle.rand([8]), paddle.rand([8]), paddle.rand([8]), "
            "paddle.rand([8])"),
    "A2C": ("A2C/atari_model", "parl.algorithms.A2C(model, vf_loss_coeff=0.5)",
            f"{_ATARI}, paddle.randint(0, 6, [2]), paddle.rand([2]), paddle.rand([2]), 1e-3, -0.01"),
}  # fmt: skip


def _parl(project: Path, every: bool) -> Iterator[Case]:
    for file, (made, methods) in _PARL_MODELS.items():
        path = project / "examples" / f"{file}.py"
        for method, given in methods.items():
            wrapped = "" if method == "forward" else _METHOD.replace("METHOD", method)
            source = f"{_BOX}{_GAME}module = load({str(path)!r})\nmodel = module.{made}\n{wrapped}inputs = ({given},)\n"
            yield _model(f"examples/{file}.{method}", "parl", source)
    for name, (file, made, given) in _PARL_ALGORITHMS.items():
        path = project / "examples" / f"{file}.py"
        model = _PARL_MODELS[file][0]
        source = f"{_BOX}import parl\nmodel = load({str(path)!r}).{model}\n{_LEARNS.replace('ALGORITHM', made)}"
        yield _model(
            f"algorithms.{name}.learn",
            "parl",
            f"{source}inputs = ({given},)\n",
            learns=True,
            random=name in ("SAC", "TD3"),
        )


# ---- PaddleScience -----------------------------------------------------------------------------------------------
_EQUATION = """
import ppsci
equation = ppsci.equation.EQUATION
net = ppsci.arch.MLP(INS, OUTS, 3, 16)
class Residuals(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.net = net
        terms = equation.equations.values()
        self.functions = [term for term in terms if not hasattr(term, "subs")]
        symbols = [term for term in terms if hasattr(term, "subs")]
        made = ppsci.lambdify(symbols, net, extra_parameters=list(equation.learnable_parameters)) if symbols else []
        self.terms = made if isinstance(made, list) else [made]
    def forward(self, x):
        ppsci.autodiff.clear()
        found = [term(dict(x)) for term in self.terms]
        return found + [function({**x, **self.net(x)}) for function in self.functions]
model = Residuals()
def points(n):
    return paddle.rand([n, 1])
inputs = ({k: points(8) for k in INS},)
for t in inputs[0].values():
    t.stop_gradient = False
"""
_EQUATIONS = {
    "AllenCahn(0.01)": ("t x", "u"),
    "Biharmonic(2, -1.0, 1.0)": ("x y", "u"),
    "Helmholtz(3, 1.0)": ("x y z", "u"),
    "Laplace(2)": ("x y", "u"),
    "LinearElasticity(E=None, nu=None, lambda_=1e4, mu=100, dim=2)": (
        "x y normal_x normal_y",
        "u v sigma_xx sigma_yy sigma_xy",
    ),
    "NavierStokes(0.1, 1.0, 3, False)": ("x y z", "u v w p"),
    "NavierStokes(0.1, 1.0, 2, True)": ("t x y", "u v p"),
    "NLSMB(0.5, -1.0, 0.5)": ("t x", "Eu Ev pu pv eta"),
    "Poisson(2)": ("x y", "p"),
    "Vibration(2, -4, 0)": ("t_f", "eta"),
    "HeatExchanger(1, 1, 1, 1, 1, 1)": ("x t qm_h qm_c", "T_h T_c T_w"),
    "NormalDotVec(('u', 'v'))": ("x y normal_x normal_y", "u v"),
}


def _paddlescience(project: Path, every: bool) -> Iterator[Case]:
    for path in sorted((project / "ppsci/arch").glob("*.py")):
        for node in ast.parse(path.read_bytes()).body:
            if isinstance(node, ast.ClassDef) and (source := _example(ast.get_docstring(node) or "")):
                yield _model(f"arch.{node.name}", "ppsci", "import ppsci\n" + source)
    for made, (ins, outs) in _EQUATIONS.items():
        source = _EQUATION.replace("EQUATION", made).replace("INS", repr((*ins.split(),)))
        yield _model(f"equation.{made}", "ppsci", source.replace("OUTS", repr((*outs.split(),))))


def _example(docstring: str) -> str:
    """Return the source of a docstring's example up to the call of the model that it makes, "" where there is none."""
    lines = [line.strip() for line in docstring.splitlines()]
    text = "\n".join(line[4:] for line in lines if line.startswith((">>> ", "... ")))
    try:
        tree = ast.parse(inspect.cleandoc(text))
    except SyntaxError:
        return ""
    made: set[str] = set()
    for i, statement in enumerate(tree.body):
        for call in ast.walk(statement):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in made:
                given = ", ".join(ast.unparse(argument) for argument in call.args)
                before = "\n".join(ast.unparse(s) for s in tree.body[:i])
                if call.keywords or any(isinstance(a, ast.Starred) for a in call.args):
                    return ""
                return f"{before}\nmodel, inputs = {call.func.id}, ({given},)\n" if given else ""
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
            made |= {target.id for target in statement.targets if isinstance(target, ast.Name)}
    return ""
