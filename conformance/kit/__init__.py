"""What every examination shares: requirements, cases, clients, expectations, transcripts, the runner and its reports."""
