"""Public Paddle projects, run as they are with dy2st in PaddlePaddle's place: which run, which agree, and why not."""
