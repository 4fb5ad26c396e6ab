! Formatted records, each flushed.
program records
  implicit none
  integer :: i
  open (unit=10, file='records.txt', status='replace')
  do i = 1, 5000
    write (10, '(a, i8)') 'value', i
    flush (10)
  end do
  close (10)
end program records
