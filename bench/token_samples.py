"""Sentences as knowledge items and tool output hold them, in scripts that our own files lack."""

RUSSIAN = """\
Перед запуском миграции проверьте, что резервная копия базы создана сегодня, иначе откат займёт часы.
Сервис отвечает кодом 503, пока индекс перестраивается; подождите две минуты и повторите запрос.
Имя ветки по умолчанию изменили в марте: теперь она называется main, а старая удалена.
Если сборка падает с ошибкой «недостаточно места на диске», очистите каталог временных файлов.
Токен для тестового стенда выдаёт Марина, срок действия — тридцать дней.
Не передавайте путь с пробелами: утилита разбивает его на части и сообщает, что файл не найден.
Очередь сообщений разбирает один обработчик, поэтому порядок сохраняется, но скорость ограничена.
Ответ сервера содержит дату в местном времени, переведите её в UTC, прежде чем сравнивать.
Договорились хранить журналы девяносто дней, затем переносить их в холодное хранилище.
Функция возвращает пустой список, если пользователь не состоит ни в одной группе.
Кодировка выгрузки — windows-1251, поэтому при чтении укажите её явно.
При одновременной записи двух узлов побеждает тот, кто первым занял блокировку.
""".splitlines()

CJK = """\
迁移之前请先确认今天已经备份了数据库，否则回滚需要几个小时。
索引重建期间服务会返回 503，请等待两分钟后重试。
默认分支在三月份改名为 main，旧分支已经删除。
如果构建因磁盘空间不足而失败，请清理临时文件目录。
不要传入带空格的路径：该工具会把它拆开并提示找不到文件。
服务器返回的是本地时间，比较之前请转换为 UTC。
マイグレーションの前に、今日のバックアップがあることを確認してください。
インデックスの再構築中は 503 が返るので、二分待ってから再試行してください。
既定のブランチ名は三月に main に変わり、古いものは削除されました。
空白を含むパスを渡すと、ツールが分割してファイルが見つからないと報告します。
마이그레이션 전에 오늘 백업이 있는지 확인하세요. 그렇지 않으면 복구에 몇 시간이 걸립니다.
인덱스를 다시 만드는 동안 서비스가 503을 반환하므로 이 분 뒤에 다시 시도하세요.
기본 브랜치 이름은 삼월에 main으로 바뀌었고 이전 브랜치는 삭제되었습니다.
공백이 있는 경로를 전달하면 도구가 나누어 파일을 찾을 수 없다고 알립니다.
""".splitlines()

OPAQUE = """\
/usr/lib/python3.11/site-packages/psycopg2/extensions.py
C:\\Users\\Administrator\\AppData\\Local\\Temp\\pip-req-build-x7k2\\setup.cfg
/var/log/journal/4f1c9ab2d7e84c0f9a5f2e6b1c3d8e07/system@000612.journal
s3://acme-prod-artifacts/builds/2026/11/30/release-4.18.2-rc1+sha.9f3c2ab.tar.gz
https://api.example.com/v2/projects/18244/pipelines/991827/jobs?scope[]=failed&per_page=100
k8s_app-deployment-6d4cf56db6-w9x7z_production_2b1f77c4-1f0c-4c5e-8c56-3a9d4f1f7a11_0
sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0
src/main/java/com/example/billing/internal/InvoiceReconciliationServiceImpl.java:418
node_modules/.pnpm/@babel+core@7.26.0/node_modules/@babel/core/lib/config/files/package.js
2026-11-30T12:44:01.118Z 1732970641118 0x7ffd5a3c 10.244.3.17:50051 exit=137 oom_score_adj=999
arn:aws:iam::123456789012:role/service-role/lambda-basic-execution-role-a1b2c3d4
""".splitlines()
