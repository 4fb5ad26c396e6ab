# needs: git
git init -q r
cd r
git config user.email a@b
git config user.name a
cp ../in/words .
git add .
git commit -qm x
git fsck
git status -s
git show --stat --format=%s
cd ..
rm -rf r
