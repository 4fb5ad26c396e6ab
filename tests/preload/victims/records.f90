! Formatted, unformatted and stream I/O of Fortran.
program records
  implicit none
  real(8) :: field(1000), back(1000)
  integer :: i, unit
  field = [(real(i, 8), i = 1, 1000)]
  open(newunit=unit, file="formatted.txt", form="formatted")
  do i = 1, 1000
    write(unit, "(i6, es16.8)") i, field(i)
  end do
  close(unit)
  open(newunit=unit, file="unformatted.bin", form="unformatted")
  do i = 1, 10
    write(unit) field
  end do
  close(unit)
  open(newunit=unit, file="stream.bin", form="unformatted", access="stream")
  write(unit) field
  write(unit, pos=4001) field(1:10)
  close(unit)
  open(newunit=unit, file="direct.bin", form="unformatted", access="direct", recl=800)
  do i = 10, 1, -1
    write(unit, rec=i) field(1:100)
  end do
  read(unit, rec=5) back(1:100)
  close(unit)
  open(newunit=unit, file="unformatted.bin", form="unformatted", status="old")
  do i = 1, 10
    read(unit) back
  end do
  close(unit)
  if (any(back /= field)) stop 1
  print *, "done"
end program records
