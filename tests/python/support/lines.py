"""Lines of many lengths, used as records."""

LINES = [f"line {number} {'x' * (number * 7919 % 90)}".encode() for number in range(2000)]
