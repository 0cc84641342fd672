# Takes what looks best right now: a line, a block, the dearest capture, a bet on a good card, the tempting betrayal.
import random

WORTH = {"p": 1, "n": 3, "b": 3, "r": 5, "q": 9, "k": 0}


def longest_line(grid, row, column, mark):
    """The longest line of a mark's own that a stone of it would make here."""
    longest = 0
    for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
        length = 1
        for way in (1, -1):
            r, c = row + way * down, column + way * right
            while 0 <= r < len(grid) and 0 <= c < len(grid[0]) and grid[r][c] == mark:
                length += 1
                r, c = r + way * down, c + way * right
        longest = max(longest, length)
    return longest


def play_line(grid, place, goal, mark, legal):
    other = "O" if mark == "X" else "X"

    def value(move):
        row, column = place(move)
        mine, theirs = (longest_line(grid, row, column, each) for each in (mark, other))
        middle = -abs(2 * column - (len(grid[0]) - 1))
        return (mine >= goal, theirs >= goal, max(mine, theirs), middle, random.random())

    return max(legal, key=value)


def play_tic_tac_toe(observation):
    board = observation["board"]
    grid = [board[start:start + 3] for start in (0, 3, 6)]
    return play_line(grid, lambda move: divmod(move, 3), 3, observation["mark"], observation["legal"])


def play_connect_four(observation):
    grid = observation["board"]

    def place(column):
        return max(row for row in range(len(grid)) if grid[row][column] == ""), column

    return play_line(grid, place, 4, observation["mark"], observation["legal"])


def pieces_of(fen):
    """The pieces of a position in Forsyth-Edwards notation, by square."""
    pieces = {}
    for index, row in enumerate(fen.split(" ")[0].split("/")):
        file = 0
        for letter in row:
            if letter.isdigit():
                file += int(letter)
            else:
                pieces["abcdefgh"[file] + str(8 - index)] = letter.lower()
                file += 1
    return pieces


def play_chess(observation):
    pieces = pieces_of(observation["board"])

    def value(move):
        taken = pieces.get(move[2:4])
        gain = 10 * WORTH[taken] - WORTH[pieces[move[:2]]] if taken else 0
        return (gain + 10 * WORTH.get(move[4:], 0), random.random())

    return max(observation["legal"], key=value)


def play_leduc(observation):
    card, shared = observation["board"]["card"], observation["board"]["public"]
    if card[0] == "K" or (shared is not None and card[0] == shared[0]):
        wanted = ("raise", "call")
    else:
        wanted = ("check", "call") if card[0] == "Q" else ("check", "fold")
    return next(move for move in wanted if move in observation["legal"])


def play_prisoners(observation):
    return ["D" for _ in observation["opponents"]]


PLAYERS = {
    "tic-tac-toe": play_tic_tac_toe,
    "connect-four": play_connect_four,
    "chess": play_chess,
    "leduc-holdem": play_leduc,
    "prisoners": play_prisoners,
}


def act(observation):
    return PLAYERS[observation["game"]](observation)
