#!/bin/sh
# Runs a command as ranks on several hosts of one machine: network namespaces with names of their own, joined by a bridge.
#
#   tests/ranks/hosts.sh [-h HOSTS] [-n RANKS] [-r RATE] [-l LAUNCHER] [-b] COMMAND...
#
# -h: how many hosts, 2 of them else; -n: ranks on each, 1; -r: what each gives and takes, as tc says it (100mbit), else all
# that the machine can; -l: openmpi or mpich; -b: prints the bytes that left each host, headers included. Rank r is on core r.
#
# Everything lies in namespaces of mounts, processes and networks that end with this process, however it ends. Needs root
# and iproute2; where they are missing the exit status is 77, with the reason.
set -u

if [ "$$ ${HOSTS_INSIDE:-}" != "1 yes" ]; then
    for need in ip tc unshare taskset; do
        command -v $need >/dev/null 2>&1 || { echo "$need is not installed (iproute2, util-linux)"; exit 77; }
    done
    alone="unshare --mount --net --pid --fork --kill-child --mount-proc"
    $alone sh -c 'mount -t tmpfs none /run && ip netns add a && ip link add name br type bridge &&
        ip link add name one type veth peer name two netns a && tc qdisc add dev one root tbf rate 1gbit burst 256kb latency 50ms &&
        ip netns exec a unshare --uts true' >/dev/null 2>&1 || { echo "namespaces of networks are not allowed here"; exit 77; }
    exec env HOSTS_INSIDE=yes $alone sh "$0" "$@"
fi
unset HOSTS_INSIDE

hosts=2 ranks=1 rate= launcher= count=
while getopts h:n:r:l:b name; do
    case $name in
    h) hosts=$OPTARG ;;
    n) ranks=$OPTARG ;;
    r) rate=$OPTARG ;;
    l) launcher=$OPTARG ;;
    b) count=1 ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
if [ -z "$launcher" ]; then
    launcher=mpich
    command -v mpirun.mpich >/dev/null 2>&1 || launcher=openmpi
fi
command -v mpirun.$launcher >/dev/null 2>&1 || { echo "mpirun.$launcher is not installed"; exit 77; }

# limit HOST DEVICE: what it sends
limit() {
    [ -z "$rate" ] || ip netns exec "$1" tc qdisc add dev "$2" root tbf rate "$rate" burst 256kb latency 50ms
}

sent() {
    ip netns exec "$1" cat /sys/class/net/eth0/statistics/tx_bytes
}

trap 'exit 143' TERM
trap 'exit 130' INT
set -e
mount -t tmpfs none /run
files=/run/deepc
mkdir $files
ip netns add switch
ip -n switch link add bridge type bridge
ip -n switch link set bridge up
echo "127.0.0.1 localhost" >$files/hosts
list=
for i in $(seq "$hosts"); do
    ip netns add "host$i"
    ip -n "host$i" link add eth0 type veth peer name "port$i" netns switch
    ip -n "host$i" address add "10.77.0.$i/24" dev eth0
    ip -n "host$i" link set lo up
    ip -n "host$i" link set eth0 up
    ip -n switch link set "port$i" master bridge up
    limit "host$i" eth0
    limit switch "port$i"
    echo "10.77.0.$i host$i" >>$files/hosts
    list=$list${list:+,}host$i:$ranks
done
mount --bind $files/hosts /etc/hosts

# Launchers call it as they would call rsh: on HOST COMMAND...
cat >$files/on <<'END'
#!/bin/sh
host=$1
shift
exec ip netns exec "$host" unshare --uts sh -c "hostname $host; exec $*"
END
cat >$files/rank <<'END'
#!/bin/sh
exec taskset -c $((${PMI_RANK:-${OMPI_COMM_WORLD_RANK:-0}} % $(nproc))) "$@"
END
chmod +x $files/on $files/rank

if [ $launcher = mpich ]; then
    set -- mpirun.mpich -launcher rsh -launcher-exec $files/on -iface eth0 -hosts "$list" -n $((hosts * ranks)) $files/rank "$@"
    # UCX and libfabric would take memory: it is one machine.
    export UCX_TLS=tcp,self UCX_NET_DEVICES=eth0 FI_PROVIDER=tcp FI_TCP_IFACE=eth0
else
    set -- mpirun.openmpi --allow-run-as-root --mca plm_rsh_agent $files/on --mca btl tcp,self --mca btl_tcp_if_include eth0 \
        --mca oob_tcp_if_include eth0 --mca pml ob1 --bind-to none --host "$list" -n $((hosts * ranks)) $files/rank "$@"
fi
[ -z "$count" ] || for i in $(seq "$hosts"); do sent "host$i" >"$files/before$i"; done
status=0
ip netns exec host1 unshare --uts sh -c 'hostname host1; exec "$0" "$@"' "$@" &
wait $! || status=$? # here, so that a signal is not late
[ -z "$count" ] || for i in $(seq "$hosts"); do
    echo "host$i sent $(($(sent "host$i") - $(cat "$files/before$i"))) bytes"
done
exit $status
