def another_symbol(x):
    return x
