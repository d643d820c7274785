def line_ignored(x):
    return ~x
