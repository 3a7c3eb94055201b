#!/bin/sh
# threads.sh -n N [OPTIONS] DEEPC ARGS...: stands where a launcher of MPI does; the ranks are threads of one process.
n=1
while :; do
    case $1 in
    -n) n=$2 && shift 2 ;;
    -*) shift ;;
    *) break ;;
    esac
done
deepc=$1
shift
exec "$deepc" --ranks "$n" "$@"
