! records FILE LINES: formatted records, each flushed.
program records
  implicit none
  character(len=4096) :: name, number
  integer :: i, lines
  call get_command_argument(1, name)
  call get_command_argument(2, number)
  read (number, *) lines
  open (unit=10, file=trim(name), status='replace')
  do i = 0, lines - 1
    write (10, '(a, i10, f12.1)') 'line', i, 0.5 * i
    flush (10)
  end do
  close (10)
end program records
