# needs: sqlite3
sqlite3 db <<'SQL'
create table t(x);
with recursive n(i) as (select 1 union all select i+1 from n where i<2000)
  insert into t select i from n;
select sum(x) from t;
pragma integrity_check;
SQL
rm db
