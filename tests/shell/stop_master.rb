# Asks the master to stop, and with it the cluster.
stop_master
