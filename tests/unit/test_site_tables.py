"""A cell of the site's wide tables knows the title of its column."""

from hack.site_tables import titled


def table(columns: int) -> str:
    titles = "".join(f"<th>t<code>{number}</code></th>" for number in range(columns))
    cells = "".join(f'<td style="x">{number}</td>' for number in range(columns - 1))
    row = f"<tr>{cells}<td>\n</td></tr>"
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{row}{row}</tbody></table>"


def test_cells_of_wide_tables_get_their_titles_and_empty_ones_stay_empty() -> None:
    said = titled(f"<p>a</p>{table(3)}")
    assert said.startswith("<p>a</p><table data-stacked><thead><tr><th>t<code>0</code></th>")
    row = '<tr><td style="x" data-title="t0">0</td><td style="x" data-title="t1">1</td>'
    assert said.count(f'{row}<td data-title="t2"></td></tr>') == 2


def test_tables_of_two_columns_and_of_others_stay_as_they_are() -> None:
    for html in (table(2), table(3).replace("<table>", '<table class="highlighttable">')):
        assert titled(html) == html
