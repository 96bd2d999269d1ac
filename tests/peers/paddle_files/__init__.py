"""Models that PaddlePaddle saves, with inputs and what it makes of them; run as a module it writes them."""
