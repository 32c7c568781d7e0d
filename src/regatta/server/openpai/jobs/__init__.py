"""Jobs as OpenPAI's clients see them: one folder for what is asked, shown and streamed of them."""
