"""Operations on registers: one element, or a vector of them."""
