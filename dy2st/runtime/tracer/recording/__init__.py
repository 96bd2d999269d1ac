"""Operations into a Program, with the history that gradients inside of it need."""
