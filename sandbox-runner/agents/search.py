# Looks ahead: tic-tac-toe to its end, connect four a few moves. A position is two sets of cells, held in the bits of two
# numbers, and what was found of a position is kept for as long as the turn lasts.
import random

# Width, height, length of a line, and how many moves to look ahead.
SHAPES = {"tic-tac-toe": (3, 3, 3, 9), "connect-four": (7, 6, 4, 4)}


def lines_through(width, height, length):
    """For each cell, the lines that it is part of."""
    through = [[] for _ in range(width * height)]
    for row in range(height):
        for column in range(width):
            for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
                line = [(row + step * down, column + step * right) for step in range(length)]
                if all(r < height and 0 <= c < width for r, c in line):
                    cells = [r * width + c for r, c in line]
                    mask = sum(1 << cell for cell in cells)
                    for cell in cells:
                        through[cell].append(mask)
    return through


class Search:
    def __init__(self, game):
        self.width, self.height, length, self.depth = SHAPES[game]
        self.falls = game == "connect-four"
        self.lines = lines_through(self.width, self.height, length)
        middle_first = sorted(range(self.width), key=lambda each: abs(2 * each - self.width + 1))
        self.columns = [[row * self.width + column for row in reversed(range(self.height))] for column in middle_first]
        self.known = {}

    def moves(self, taken):
        """The free cells, or the lowest of each column, those in the middle first."""
        for column in self.columns:
            for cell in column:
                if not taken >> cell & 1:
                    yield cell
                    if self.falls:
                        break

    def value(self, mine, theirs, depth, score):
        """What a position is worth to whoever is on the move; a win is worth more the sooner it comes."""
        key = (mine, theirs)
        if key not in self.known:
            moves = self.moves(mine | theirs)
            self.known[key] = max((self.after(cell, mine, theirs, depth, score) for cell in moves), default=0)
        return self.known[key]

    def after(self, cell, mine, theirs, depth, score=0):
        placed = mine | 1 << cell
        if any(placed & line == line for line in self.lines[cell]):
            return depth
        # Where more lines cross, a stone is worth more: never as much as a win.
        score += len(self.lines[cell]) / 1000
        return -self.value(theirs, placed, depth - 1, -score) if depth > 1 else score

    def choose(self, mine, theirs):
        self.known.clear()
        values = {cell: self.after(cell, mine, theirs, self.depth) for cell in self.moves(mine | theirs)}
        best = max(values.values())
        return random.choice([cell for cell, value in values.items() if value == best])


searches = {}


def init(config):
    searches[config["game"]] = Search(config["game"])


def act(observation):
    search = searches[observation["game"]]
    board = observation["board"]
    cells = [cell for row in board for cell in row] if search.falls else board
    mine = sum(1 << i for i, cell in enumerate(cells) if cell == observation["mark"])
    theirs = sum(1 << i for i, cell in enumerate(cells) if cell not in ("", observation["mark"]))
    cell = search.choose(mine, theirs)
    return cell % search.width if search.falls else cell
