"""The section of docs/performance.md that was measured by hand on a loaded machine."""

LOADED = """\
## On a loaded machine, by processor time

Measured 2026-11-28 on another machine than the rest of this page: 2 cores of an Intel Xeon with AVX-512, Python
3.11.7, numpy 2.4.6, torch 2.14.1, jax 0.10.2, load average 6 to 21. So a figure is processor time of all threads of
a process, not time on a clock: the least of 2 to 15 samples taken in turn, dy2st, torch and NumPy with one thread
each. What shares a core takes of its caches is in the figures. "Before" is the code before the changes named below,
after 0.3 s of calls, in which not all eager code had become native; "now" is after 0.6 to 1.2 s of processor time
of calls. An eager LSTM stands beside torch's fused one. Not measured so: BERT and ResNet-18 training, the epoch of
a DataLoader, four LSTM sizes with gradients and without, `while` counter (torch took more than 60 s).

| workload | code | model decorated | eager | torch eager | best peer, if another | model / best | eager / torch |
| --- | --- | --- | --- | --- | --- | --- | --- |
| MLP with a random layer, SGD step | now | 484 us | 611 us | 622 us | numpy 312 us | 1.55 | 0.98 |
| autoencoder, Adam step | now | 186 us | 204 us | 483 us | numpy 70 us | 2.66 | 0.42 |
| second derivative of a 2x2 layer, Adam step | now | 468 us | 954 us | 1.31 ms | jax 30.8 us | 15.22 | 0.73 |
| Burgers' equation, Adam step | now | 3.3 ms | 5.44 ms | 3.95 ms | jax 992 us | 3.33 | 1.38 |
| LeNet, inference | now |  | 1.75 ms | 5.01 ms |  |  | 0.35 |
| GRU, greedy decoding | now |  | 21.1 ms | 7.03 ms |  |  | 3.01 |
| policy net, one state | now |  | 17.9 us | 15.1 us |  |  | 1.19 |
| cart-pole, 500 steps | now |  | 86.6 ms | 102 ms |  |  | 0.85 |
| ResNet-18, batch 1 | now |  | 8.31 ms | 10.5 ms |  |  | 0.79 |
| Hessian | now |  | 3.8 ms | 3.07 ms |  |  | 1.24 |
| transformer block, inference | now |  | 18.7 ms | 19.7 ms |  |  | 0.95 |
| 12 operations on 4M numbers | now |  | 51.2 ms | 43 ms |  |  | 1.19 |
| Jacobians | now |  | 1.33 ms | 1.2 ms |  |  | 1.11 |
| PINN, a step of L-BFGS | now | 17.8 ms | 24.9 ms | 16.1 ms |  | 1.10 | 1.55 |
| GRU translator with attention, Adam step | now | 57.6 ms | 177 ms | 71.8 ms |  | 0.80 | 2.46 |
| `if` on a tensor | before |  | 7.99 us | 10.8 us |  |  | 0.74 |
| LSTM in a `while`, 1 x 64 | before |  | 6.04 ms | 268 us |  |  | 22.52 |
| the same with gradients | before | 537 us | 100 ms | 1.15 ms |  | 0.47 | 87.34 |
| gelu(layer_norm) | before |  | 6.06 ms | 8.12 ms |  |  | 0.75 |
| softmax | before |  | 3.33 ms | 4.99 ms |  |  | 0.67 |
| transformer block, Adam step | before | 89.6 ms | 81.7 ms | 57.6 ms |  | 1.56 | 1.42 |
| Newton's method | before |  | 790 us | 1.45 ms |  |  | 0.54 |
| Lorenz | before |  | 2.13 s | 1.73 s |  |  | 1.23 |
| LeNet, Adam step | before | 5.26 ms | 9.09 ms | 13.2 ms |  | 0.40 | 0.69 |
| ResNet-18, batch 8 | before |  | 27.8 ms | 39.1 ms |  |  | 0.71 |
| GAN, two Adam steps | before | 7.83 ms | 8.91 ms | 9.43 ms |  | 0.83 | 0.94 |
| PPO, rollout and 4 updates | before | 20.4 ms | 33.8 ms | 35.7 ms |  | 0.57 | 0.95 |

Behind the best peer with a decorated model: whatever jax compiles as one step or NumPy does in a few calls (15
times on the 2 x 2 layer, 3.3 Burgers, 2.7 autoencoder, 1.6 MLP), and the transformer's step (1.6, three samples).
Behind torch eager: LSTM step by step beside a fused one, greedy decoding, the translator, L-BFGS, small
derivatives, the chain of 12 operations, policy net, Lorenz. First steps of a decorated model with nothing cached
took 0.09 to 1.2 s of processor time (0.33 to 7.4 s on the clock, at that load).

What was changed, least of 25 x 60 calls before and after, microseconds, torch in brackets (its own figure moves
with the load): vector times matrix 17.7 to 8.1 (6.2; 3.7), matrix times vector 16.5 to 6.8 (2.0; 2.3), two vectors
23 to 7.2 (3.4; 1.6), `x ** 2` 4.7 to 3.0 (2.5; 4.5). Reductions over more than 4,096 elements were NumPy's for
good: 32,640 elements along the last axis, sum 21.8 to 5.5, max 63.7 to 6.5; a million, sum 516 to 152, max 1,917 to
177. Largest and least elements are native from the second call on large arrays, sums from the 385th call, because
they are added up in another order.
"""
