"""Which tier runs a Program, and when it is compiled. How it runs is interpreter/ and backends/."""
