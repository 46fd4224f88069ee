"""The network: torch only, pure forward, small enough to read at one sitting."""
