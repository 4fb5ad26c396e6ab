sh -c 'kill -9 $$'
echo $?
sh -c 'kill -SEGV $$'
echo $?
sh -c 'exit 77'
echo $?
timeout 0.1 sleep 5
echo $?
