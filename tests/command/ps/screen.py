"""What a terminal of type xterm shows: the part of its language that ncurses writes."""
import re
import unicodedata

SEQUENCE = re.compile(rb"\x1b\[([?>!]?)([\d;]*)([@-~])|\x1b([()])(.)|\x1b([=>78M])|([\x00-\x1a\x1c-\x1f\x7f])|([^\x00-\x1f\x7f]+)", re.S)


class Screen:
    """Characters of one column, or of two: then the second cell is empty. A sequence that it does not know is an error, so that no test passes by mistake."""

    def __init__(self, lines, columns):
        self.rest = b""
        self.colours = set()  # of characters that were written
        self.resize(lines, columns)

    def resize(self, lines, columns):
        self.lines, self.columns = lines, columns
        self.cells = [[" "] * columns for _ in range(lines)]
        self.line = self.column = 0
        self.region = 0, lines - 1  # that scrolls
        self.last = " "
        self.colour = None

    def text(self):
        return "\n".join("".join(line).rstrip() for line in self.cells)

    def feed(self, data):
        data, at = self.rest + data, 0
        while at < len(data):
            found = SEQUENCE.match(data, at)
            if found is None:
                break  # it has not come in full
            if found.group(8) and found.end() == len(data):
                whole = found.group(8).decode(errors="ignore").encode()
                self.write(whole.decode())
                at += len(whole)
                break
            at = found.end()
            self.obey(found)
        self.rest = data[at:]

    def obey(self, found):
        if found.group(8):
            self.write(found.group(8).decode())
        elif found.group(7):
            self.control(found.group(7))
        elif found.group(6) == b"M":
            if self.line == self.region[0]:
                self.scroll(-1)
            else:
                self.line = max(self.line - 1, 0)
        elif found.group(3) and not found.group(1):
            self.sequence(found.group(3).decode(), [int(number or 0) for number in found.group(2).split(b";")])

    def write(self, text):
        for character in text:
            width = 2 if unicodedata.east_asian_width(character) in "WF" else 1
            if self.column + width > self.columns:
                self.next_line()
                self.column = 0
            self.cells[self.line][self.column:self.column + width] = [character, ""][:width]
            self.last = character
            self.column += width
            self.colours.add(self.colour)

    def next_line(self):
        if self.line == self.region[1]:
            self.scroll(1)
        else:
            self.line = min(self.line + 1, self.lines - 1)

    def scroll(self, count):
        """Up; down where it is negative."""
        top, bottom = self.region
        rows = self.cells[top:bottom + 1]
        new = [[" "] * self.columns for _ in range(min(abs(count), len(rows)))]
        self.cells[top:bottom + 1] = rows[len(new):] + new if count > 0 else (new + rows)[:len(rows)]

    def control(self, byte):
        if byte == b"\r":
            self.column = 0
        elif byte == b"\n":
            self.next_line()
        elif byte == b"\b":
            self.column = max(self.column - 1, 0)
        elif byte == b"\t":
            self.column = min(self.column // 8 * 8 + 8, self.columns - 1)
        elif byte not in b"\x00\x07\x0e\x0f":
            raise ValueError(f"control character {byte!r}")

    def sequence(self, kind, numbers):
        count = max(numbers[0], 1)
        row = self.cells[self.line]
        column = min(self.column, self.columns - 1)
        if kind in "Hf":
            self.line = min(count, self.lines) - 1
            self.column = min(max(numbers[1] if len(numbers) > 1 else 1, 1), self.columns) - 1
        elif kind in "ABCD":
            self.line = min(max(self.line + {"A": -count, "B": count}.get(kind, 0), 0), self.lines - 1)
            self.column = min(max(column + {"C": count, "D": -count}.get(kind, 0), 0), self.columns - 1)
        elif kind == "G":
            self.column = min(count, self.columns) - 1
        elif kind == "d":
            self.line = min(count, self.lines) - 1
        elif kind == "K":
            begin, end = [(column, self.columns), (0, column + 1), (0, self.columns)][numbers[0]]
            row[begin:end] = " " * (end - begin)
        elif kind == "J":
            begin = {0: self.line + 1, 2: 0}[numbers[0]]
            if numbers[0] == 0:
                row[column:] = " " * (self.columns - column)
            for line in range(begin, self.lines):
                self.cells[line] = [" "] * self.columns
        elif kind == "X":
            row[column:column + count] = " " * min(count, self.columns - column)
        elif kind == "b":
            self.write(self.last * count)
        elif kind == "@":
            row[column:] = (list(" " * count) + row[column:])[:self.columns - column]
        elif kind == "P":
            row[column:] = row[column + count:] + [" "] * min(count, self.columns - column)
        elif kind in "LM":
            rows = self.cells[self.line:]
            new = [[" "] * self.columns for _ in range(min(count, len(rows)))]
            self.cells[self.line:] = (new + rows)[:len(rows)] if kind == "L" else rows[len(new):] + new
        elif kind in "ST":
            self.scroll(count if kind == "S" else -count)
        elif kind == "r":
            self.region = count - 1, (numbers[1] if len(numbers) > 1 and numbers[1] else self.lines) - 1
            self.line = self.column = 0
        elif kind == "m":
            for number in numbers:
                if number == 0 or number == 39:
                    self.colour = None
                elif 30 <= number <= 37:
                    self.colour = number
        elif kind not in "hltnc":
            raise ValueError(f"sequence of {kind!r} with {numbers}")
