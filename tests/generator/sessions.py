"""Random sessions of training in eager mode: models, optimizers, and what may come between two steps.

    python -m tests.generator.sessions [--count N] [--seed N] [--only N]

A session runs twice in one process (`session_runs.py`): as users have it, with tapes, library functions and steps of
optimizers that run as Programs after a while, and op by op on NumPy. What it says at each step must be the same.
"""

import argparse
import sys

from tests.generator.choices import Below, seeded

MODELS = (
    "nn.Linear(4, 4)",
    "nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 4))",
    "nn.Sequential(nn.Linear(4, 5), nn.LayerNorm(5), nn.GELU(), nn.Linear(5, 4))",
    "nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Sigmoid())",
    "nn.Sequential(nn.Linear(4, 4, bias_attr=False), nn.BatchNorm1D(4), nn.ReLU(), nn.Linear(4, 4))",
    "w.Tied()",
    "w.Turns()",
    "w.Gate()",
    "w.Image()",
    "w.Recurrent(nn.GRU(4, 4))",
    "w.Recurrent(nn.LSTM(4, 4))",
    "w.Words()",
    "w.Sequence(nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0))",
    "w.Sequence(nn.MultiHeadAttention(4, 2))",
    "w.big(nn.Linear)",
    "w.Flat()",
    "w.Summed()",
    "nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.LayerNorm(4), nn.GELU(), nn.Softmax())",
    "nn.Sequential(nn.Linear(4, 6), nn.GLU(), nn.Linear(3, 4))",
    "nn.Sequential(w.Turns(), nn.Linear(4, 4), nn.Softplus())",
    "nn.Sequential(nn.Linear(4, 4), nn.PReLU(), nn.Linear(4, 4))",
)
OPTIMIZERS = (
    "SGD({rate}, parameters={of}{more})",
    "Momentum({rate}, 0.9, parameters={of}{more})",
    "Momentum({rate}, 0.9, parameters={of}, use_nesterov=True{more})",
    "Adam({rate}, epsilon=1e-3, parameters={of}{more})",
    "Adam({rate}, epsilon=1e-3, parameters={of}, amsgrad=True{more})",
    "AdamW({rate}, epsilon=1e-3, parameters={of})",
    "AdamW({rate}, epsilon=1e-3, parameters={of}, weight_decay=0.1, apply_decay_param_fun=lambda name: 'w' in name)",
    "Adamax({rate}, epsilon=1e-3, parameters={of}{more})",
    "Adagrad({rate}, epsilon=1e-3, parameters={of}{more})",
    "Adadelta({rate}, epsilon=1e-3, parameters={of}{more})",
    "RMSProp({rate}, epsilon=1e-3, parameters={of}, centered=True{more})",
    "NAdam({rate}, epsilon=1e-3, parameters={of}{more})",
    "RAdam({rate}, epsilon=1e-3, parameters={of}{more})",
)
LAMB = "Lamb({rate}, parameters={of})"
"""It makes any gradient as long as the parameter: also one that is zero but for rounding."""
RATES = (
    "0.05",
    "0.1",
    "paddle.optimizer.lr.StepDecay(0.1, 2, 0.5)",
    "paddle.optimizer.lr.CosineAnnealingDecay(0.1, 5)",
    "paddle.optimizer.lr.LinearWarmup(0.1, 3, 0.0, 0.1)",
)
MORE = (
    "",
    "",
    ", weight_decay=0.01",
    ", weight_decay=paddle.regularizer.L1Decay(0.01)",
    ", grad_clip=nn.ClipGradByGlobalNorm(0.5)",
    ", grad_clip=nn.ClipGradByNorm(0.3)",
    ", grad_clip=nn.ClipGradByValue(0.05)",
    ", weight_decay=0.02, grad_clip=nn.ClipGradByGlobalNorm(1.0)",
)
ROWS = ("4", "4", "3", "2 + i % 3", "(3, 5)[i % 2]", "(4, 0, 2)[i % 3]", "1 + i", "1", "(1, 4)[i % 2]")
BEFORE = (
    "x.stop_gradient = False",
    "x = x * 1.0",
    "x[0:1] = {special}",
    "net.eval()",
    "net.train()",
    "params[{k} % len(params)].stop_gradient = not params[{k} % len(params)].stop_gradient",
    "params[{k} % len(params)].stop_gradient = False",
    "params[{k} % len(params)].set_value(params[{k} % len(params)] * 0.5)",
    "with paddle.no_grad():\n    params[{k} % len(params)].scale_(0.5)",
    "params[{k} % len(params)].optimize_attr['learning_rate'] = 0.5",
    "params[{k} % len(params)].need_clip = not params[{k} % len(params)].need_clip",
    "params[{k} % len(params)].regularizer = paddle.regularizer.L2Decay(0.1)",
    "x = w.batch(i, 3)",
    "if len(params) == 4 and len(net) > 4:\n    net[1].p, net[2]._epsilon, net[3]._approximate = 0.25, 0.5, True",
    "net.to(dtype='float32')\nx = x.astype('float32')",
    "x = x.astype('float64')\nnet.astype('float64')",
    "x = x.T.T",
    "x = paddle.concat([x, x], 1)[:, ::2]",
    "x = w.batch(i, 9)[:4]",
    "handles.append(params[{k} % len(params)].register_hook(lambda g: g * (1 + i)))",
    "handles.append(params[{k} % len(params)].register_hook(lambda g: None))",
    "while handles:\n    handles.pop().remove()",
    "handles.append(net.register_forward_post_hook(lambda layer, given, y: y * 0.5))",
)
FORWARD = (
    "y = net(x)",
    "y = net(x)",
    "y = net(x)",
    "y = net(x) + x * 0.5",
    "y = net(x) * net(x * 0.5)",
    "y = net(net(x))",
    "y = paddle.concat([net(x), net(x * 2.0)])",
    "y = w.Doubled.apply(net(x))",
    "y = net(w.Doubled.apply(x))",
    "y = net(x)\ny = y + y.detach()",
    "y = net(x)\ny = paddle.stack([y[:, k] for k in range(4)], 1)",
    "y = net(x)\nfor k in range(i % 3):\n    y = paddle.tanh(y) + x",
    "y = net(x)\nwith paddle.no_grad():\n    z = net(x * 0.5)\ny = y * z",
    "y = net(x)\nif float(y.sum()) > 0.3:\n    y = y * 0.5",
    "y = net(x)\ny = y * paddle.nn.functional.softmax(y, -1)",
    "with w.packed():\n    y = net(x)",
    "with paddle.amp.auto_cast():\n    y = net(x)",
    "with paddle.amp.auto_cast(custom_black_list=['tanh']):\n    y = net(x)\ny = y.astype(x.dtype)",
    "y = paddle.vmap(net)(x) if 'Linear' in type(net).__name__ else net(x)",
    "y = paddle.jit.to_static(net.forward)(x) if i == 2 else net(x)",
    "h = net(x)\nh.stop_gradient = False\ny = net(h) + h",
    "y = net(x)\nz = y\nz = z + params[0].sum()\ny = paddle.where(z > 0, z, y)",
    "y = paddle.distributed.fleet.utils.recompute(net, x)",
)
AFTER = (
    "y = y * 1.0\ny[0:1] = 0.5",
    "y = y * 1.0\nv = y[:, 1:]\nv.scale_(0.5)",
    "y = y * 1.0\nv = y.reshape([-1])\nv.add_(paddle.ones_like(v))",
    "y.scale_(0.5)",
    "y = y.tanh()\ny.scale_(0.5)",
    "y = y.exp()\nz = y * y\ny.add_(paddle.ones_like(y))\ny = y + z",
    "handles.append(y.register_hook(lambda g: g * (1 + i)))",
    "y.register_hook(lambda g: w.said(g))",
    "y.register_hook(lambda g: w.fails() if i == 3 else g * 0.5)",
    "y.retain_grads()",
    "y.register_hook(lambda g: g.scale_(0.5))",
    "y.register_hook(lambda g: (net(x * 1.0).sum().backward(), None)[1])",
    "y.register_hook(lambda g: g.astype('float32').astype(g.dtype))",
    "y = y + 0.0\ny.stop_gradient = i % 2 == 0",
    "y = paddle.nn.functional.dropout(y, 0.5)",
    "y = y * paddle.rand(y.shape, y.dtype)",
    "y = y[::-1] + y",
    "y = y.cumsum(0)",
    "y = paddle.einsum('ij,kj->ik', y, y)",
    "y = y.flatten()[:4].reshape([1, 4])",
    "a, b = paddle.split(y, 2, 1)\ny = paddle.concat([b, a * 2.0], 1)",
    "y = paddle.where(y > 0.1, y, y * 0.25)",
    "y = y[y[:, 0] > 0.0]",
    "y = paddle.sort(y, 1)",
    "y = y.clip(-0.5, 0.5)",
    "y = y.astype('float32').astype(x.dtype)",
    "y = y / y.norm()",
    "y = y @ y.T",
    "y = paddle.add_n([y, y, x.sum() * 0.1 + y])",
)
LOSSES = (
    "loss = nn.functional.mse_loss(y, w.like(y))",
    "loss = nn.functional.mse_loss(y, w.like(y))",
    "loss = nn.functional.cross_entropy(y, w.labels(y))",
    "loss = nn.CrossEntropyLoss(weight=w.like(y[0] if len(y) else y.sum(0)).abs(), reduction='sum')(y, w.labels(y))",
    "loss = (y * y).mean()",
    "loss = y.sum()",
    "loss = nn.functional.smooth_l1_loss(y, w.like(y), reduction='sum')",
    "loss = nn.functional.kl_div(nn.functional.log_softmax(y), nn.functional.softmax(w.like(y)))",
    "loss = paddle.logsumexp(y)",
    "loss = nn.functional.binary_cross_entropy_with_logits(y, w.like(y).abs())",
    "loss = y",
    "loss = (y - w.like(y)).abs().sum() + sum((p * p).sum() for p in params) * 0.01",
)
BETWEEN = (
    "with paddle.no_grad():\n    params[{k} % len(params)].scale_(0.5)",
    "params[{k} % len(params)].set_value(params[{k} % len(params)] * 0.5)",
    "params[{k} % len(params)].stop_gradient = True",
    "with paddle.no_grad():\n    x.scale_(0.5)",
    "with paddle.no_grad():\n    y.scale_(0.5)",
    "x.set_value(x * 2.0)",
    "net.clear_gradients()",
    "loss = loss * 2.0",
    "loss = loss + loss.detach() * 0.5",
    "kept.append(loss)",
    "kept.append(y)",
)
BACKWARD = (
    "loss.backward()",
    "loss.backward()",
    "loss.backward()",
    "loss.backward()",
    "loss.backward(retain_graph=True)\nloss.backward()",
    "loss.backward()\nloss.backward()",
    "loss.backward(w.like(loss))",
    "w.say(paddle.grad([y, loss], params[:1], None, True, no_grad_vars=[y], allow_unused=True))\nloss.backward()",
    "loss.backward()\nkept_grads.extend(p.grad for p in params)",
    "g, = paddle.grad(loss, [y], create_graph=True)\nw.say(g)\n(g * g).sum().backward()",
    "w.in_thread(loss.backward)",
    "for g in paddle.grad(loss.sum(), params, None, True, allow_unused=True):\n    w.say(g)\n(loss * 0.5).backward()",
    "w.say(paddle.grad(loss, params, allow_unused=True))",
    "w.say(paddle.grad(loss, [x, *params], allow_unused=True, retain_graph=True))\nloss.backward()",
    "w.say(paddle.grad(y, params, grad_outputs=w.like(y), allow_unused=True, retain_graph=True))\nloss.backward()",
    "paddle.autograd.backward([loss, y], [None, w.like(y)])",
    "g = paddle.grad(loss, params, create_graph=True, allow_unused=True)\nw.say(g)\n"
    "(sum((one * one).sum() for one in g if one is not None) + loss.sum()).backward()",
    "g = paddle.grad(y, params, grad_outputs=w.like(y), create_graph=True, allow_unused=True)\nw.say(g)\n"
    "h = paddle.grad(sum((one * one).sum() for one in g if one is not None), params, allow_unused=True)\nw.say(h)\n"
    "loss.backward()",
    "(loss / 2).backward()\n(net(x) * 0.5).sum().backward()",
    "if len(kept) > 1:\n    (kept.pop(0).sum() + kept.pop(0).sum()).backward()",
    "scaler.scale(loss).backward()\nscaler.step(opt)\nscaler.update()\nopt.clear_grad()",
    "scaler.scale(loss).backward()\nscaler.unscale_(opt)\nscaler.step(opt)\nscaler.update()\nopt.clear_grad()",
    "opt.minimize(loss)",
)
STEP = (
    "opt.step()\nopt.clear_grad()",
    "opt.step()\nopt.clear_grad()",
    "opt.step()\nopt.clear_grad()",
    "opt.step()\nopt.clear_grad(set_to_zero=False)",
    "opt.step()\nopt.clear_grad(set_to_zero=True)",
    "if i % 2:\n    opt.step()\n    opt.clear_grad()",
    "opt.step()",
    "opt.step()\nopt.step()\nopt.clear_grad()",
    "other.step()\nopt.step()\nopt.clear_grad()\nother.clear_grad()",
    "(opt if i % 3 else other).step()\nopt.clear_grad()",
)
LATER = (
    "opt.set_lr(0.02 * (1 + i)) if not w.is_scheduled(opt) else opt._learning_rate.step()",
    "opt._learning_rate.step() if w.is_scheduled(opt) else None",
    "saved = w.copied(opt.state_dict())\nopt.set_state_dict(saved)",
    "saved = w.copied(net.state_dict())\nnet.set_state_dict(saved)",
    "net = copy.deepcopy(net)\nparams = net.parameters()\nopt = paddle.optimizer.Adam(0.05, parameters=params)",
    "net = pickle.loads(pickle.dumps(net))\nparams = net.parameters()\n"
    "opt = paddle.optimizer.SGD(0.05, parameters=params)",
    "opt, other = other, opt",
    "opt._grad_clip = nn.ClipGradByGlobalNorm(0.1 * (1 + i))",
    "opt._grad_clip = None",
    "opt.regularization = paddle.regularizer.L2Decay(0.05)",
    "with paddle.no_grad():\n    params[{k} % len(params)].grad.scale_(0.5)",
    "params[{k} % len(params)].grad = None",
    "params[{k} % len(params)].grad = w.like(params[{k} % len(params)])",
    "opt.set_state_dict(w.loaded(opt.state_dict()))",
    "other.set_state_dict(w.loaded(opt.state_dict()))",
    "opt = paddle.optimizer.Momentum(0.05, parameters=[*params, params[0].detach()])",
    "twin = params[0].detach()\ntwin.stop_gradient = False\ntwin.grad = w.like(twin)\n"
    "opt = paddle.optimizer.Adam(0.05, parameters=[params[0], twin])",
    "kept_grads.append(params[{k} % len(params)].grad)",
    "kept_grads.extend(opt.state_dict().values())",
    "kept_grads.append(params[{k} % len(params)].detach())",
    "params[{k} % len(params)].clear_gradient(False)",
    "params[{k} % len(params)].stop_gradient = not params[{k} % len(params)].stop_gradient",
    "old = params[{k} % len(params)]\nold._grad = None\nw.replace(net, old)\nparams = net.parameters()",
    "ring = [loss, y]\nring.append(ring)\ndel ring, loss, y\ngc.collect()",
    "w.say(net(x))",
    "opt._learning_rate = 0.03",
    "for p in params:\n    p.optimize_attr['learning_rate'] = 1.0 / (1 + i)",
    "groups = [{{'params': params[:1], 'learning_rate': 0.5}}, {{'params': params[1:]}}]\n"
    "opt = paddle.optimizer.Adam(0.05, parameters=groups)",
    "kept.clear()",
)
SPECIAL = ("float('nan')", "float('inf')", "0.0", "-float('inf')", "1e-30")


class Sessions:
    """Writes a session from choices."""

    def __init__(self, below: Below) -> None:
        self.below = below

    def one_of(self, forms: tuple[str, ...]) -> str:
        return forms[self.below(len(forms))]

    def form(self, forms: tuple[str, ...]) -> list[str]:
        """Write a statement, by chance at some steps only."""
        form = self.one_of(forms)
        lines = (
            form.format(k=self.below(4), special=self.one_of(SPECIAL)).split("\n") if "{" in form else form.split("\n")
        )
        return lines

    def sometimes(self, lines: list[str]) -> list[str]:
        """Put statements under a test of the number of the step."""
        tests = ("if i == 3:", "if i == 4:", "if i % 2:", "if i > 3:", "if i % 3 == 2:", "if i < 2:")
        return [self.one_of(tests), *indented(lines)] if self.below(4) else lines

    def optimizer(self, small: bool) -> str:
        of = ("params", "params", "params[:2]", "[*params[1:], params[0]]", "net.parameters()")[self.below(5)]
        rate, more = self.one_of(RATES), self.one_of(MORE)
        return "paddle.optimizer." + self.one_of((*OPTIMIZERS, LAMB) if small else OPTIMIZERS).format(
            rate=rate, of=of, more=more
        )

    def session(self) -> str:
        """Return the text of `program(w)`."""
        dtype = ("'float64'", "'float64'", "'float32'")[self.below(3)]
        model = self.one_of(MODELS)
        small = "64" in dtype and "Sequence" not in model
        head = [
            f"w.start({dtype})",
            f"net = w.settled({model})",
            "params = net.parameters()",
            f"opt, other = {self.optimizer(small)}, {self.optimizer(small)}",
            "scaler = paddle.amp.GradScaler(init_loss_scaling=8.0, incr_every_n_steps=2)",
            "handles, kept, kept_grads = [], [], []",
        ]
        body = ["loss = y = None", f"x = w.batch(i, {self.one_of(ROWS)})"]
        groups = [
            [line for _ in range(self.below(3)) for line in self.sometimes(self.form(BEFORE))],
            self.form(FORWARD),
            [line for _ in range(self.below(3)) for line in self.sometimes(self.form(AFTER))],
            self.form(LOSSES),
            self.sometimes(self.form(BETWEEN)) if self.below(3) == 0 else [],
            self.form(BACKWARD),
            self.form(STEP),
            [line for _ in range(self.below(3)) for line in self.sometimes(self.form(LATER))],
        ]
        first = [line for group in groups[:6] for line in group]
        body += ["with w.caught():", *indented(first), "w.say(loss, y, x.grad, [p.grad for p in params])"]
        body += ["with w.caught():", *indented(groups[6])]
        body += ["with w.caught():", *indented(groups[7])] if groups[7] else []
        body += ["w.say(params, opt, other, kept_grads)"]
        lines = [*head, f"for i in range({6 + self.below(4)}):", *indented(body)]
        return "\n".join(["def program(w):", *indented(lines), ""])


def indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


def session_of(seed: int) -> str:
    """Return the text of the session that a number names."""
    return Sessions(seeded(seed)).session()


def main() -> int:
    """Run sessions; print those that differ, made small."""
    from tests.generator import session_runs  # which imports this module

    parser = argparse.ArgumentParser(prog="python -m tests.generator.sessions", description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, metavar="N", help="run the session of that number alone")
    options = parser.parse_args()
    first, count = (options.seed, options.count) if options.only is None else (options.only, 1)
    return 1 if session_runs.run(range(first, first + count)) else 0


if __name__ == "__main__":
    sys.exit(main())
