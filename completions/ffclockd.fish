complete -c ffclockd -s c -l config -d 'The configuration file [default: /etc/ffclock/ffclockd.toml, or none where servers are named here]' -r -F
complete -c ffclockd -s s -l server -d 'Ask this server, a name or an address, in addition to those of the configuration file' -r
complete -c ffclockd -l record -d 'Record the exchanges of this run into a directory, regardless of the configuration' -r -F
complete -c ffclockd -l log -d 'What to log: error, warn, info, debug or trace, or a filter such as "ffclock_daemon=debug"' -r
complete -c ffclockd -l check-config -d 'Read the configuration, report what is wrong with it, and exit'
complete -c ffclockd -l log-json -d 'Log JSON lines instead of text'
complete -c ffclockd -s h -l help -d 'Print help'
complete -c ffclockd -s V -l version -d 'Print version'
