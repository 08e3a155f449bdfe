"""What every examination shares: requirements, cases, clients, expectations, transcripts, runner and reports."""
