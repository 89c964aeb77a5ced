# Asks a region server (server: its name, which the test puts before this) to stop.
stop_regionserver server
